// How firm the winner is, in one strip: every measure as a dot, every recount without one voter, the lead.

import { brief, faint, make, problem, scrolling, tableOf } from "./text.js";
import { counted, fixed, grouped, percent, small } from "./numbers.js";
import { bar, rowOf } from "./top.js";
import { votersOf } from "./words.js";

const NOTE =
  "Everything but the similarity is as in the election above; blend has its own temperature if none was given, and under " +
  "BLEU and chrF the election is minimum Bayes risk decoding. A marked cell elects another text than the one above.";
/** Characters of a winner's text in an answer, as CUT in web/api.py. */
const CUT = 1000;
/** Dots of one strip; of more voters only the numbers are given. */
const DOTS = 120;

/** @typedef {Partial<import("./answers").MeasureWinner>} Cell a winner, or `why` there is none */
/** @typedef {{measure: string, cells: Cell[]}} Line */

/**
 * @param {HTMLElement} container
 * @param {import("./answers").Election} election
 * @param {(import("./answers").MeasureWinners | Error)[]} lists answers of api/ballots/N/winners, or why there is none
 * @param {string[]} names of the lists
 * @param {number} list the one that is looked at
 * @param {((voter: number) => void) | null} without recounts without a voter, where the page can
 */
export function showFirm(container, election, lists, names, list, without) {
  const current = lists[list];
  const strips = make("dl", { class: "strips" });
  /** @param {string} title @param {...(Node | string)} content */
  const strip = (title, ...content) => strips.append(make("dt", {}, title), make("dd", {}, ...content));
  if (current instanceof Error) strip("Other similarities", problem(current));
  else strip("Other similarities", ...measureDots(current, election));
  strip("Without one voter", ...recounts(election, without));
  if (election.no_winner === null && !election.merged) strip("Lead", ...lead(election));
  const tables = make("details", { id: "firm-numbers" }, make("summary", {}, "Numbers"), ...winnerTable(lists, names, rowOf(election, election.winner).text));
  tables.append(...changeTable(election));
  container.replaceChildren(strips, tables);
}

/** @param {import("./answers").MeasureWinners} winners @param {import("./answers").Election} election */
function measureDots(winners, election) {
  const elected = rowOf(election, election.winner).text;
  const counts = winners.measures.filter((one) => !one.why);
  const agree = counts.filter((one) => one.text === elected.slice(0, CUT));
  const items = counts.map((one) => {
    const same = agree.includes(one);
    const title = same ? "elects the same" : `elects: ${one.text}`;
    return make("li", { class: same ? "dot same" : "dot other", title }, make("span", { class: "mark", "aria-hidden": "true" }), one.measure, make("span", { class: "hidden-visually" }, same ? " (the same)" : " (another)"));
  });
  return [make("p", {}, `${grouped(agree.length)} of ${grouped(counts.length)} elect ${election.merged ? "the best whole" : "this"} output.`), make("ul", { class: "dots named", id: "measure-dots" }, ...items)];
}

/** @param {import("./answers").Election} election @param {((voter: number) => void) | null} without */
function recounts(election, without) {
  const { stability } = election;
  if (stability.why) return [make("p", {}, `Not tried: ${stability.why}`)];
  const text = make("p", { id: "stability" }, stabilityText(stability));
  if (!stability.changes.length || stability.tried > DOTS) return [text];
  const changed = new Map(stability.changes.map((change) => [change.voter, change]));
  const voters = [...votersOf(election).values()].filter((row) => row.weight > 0);
  const items = voters.map((row) => {
    const change = changed.get(row.index);
    const label = `Without “${row.text.slice(0, 120)}” (${percent(row.weight)} of the vote) ${!change ? "the winner stays" : change.winner === null ? "nobody wins" : "another wins"}`;
    const attributes = { class: change ? "mark other" : "mark same", title: label, "aria-label": label };
    if (!without) return make("li", { class: "dot" }, make("span", { ...attributes, role: "img" }));
    const dot = make("button", { type: "button", ...attributes });
    dot.addEventListener("click", () => without(row.index));
    return make("li", { class: "dot" }, dot);
  });
  const hint = without ? [faint("A dot is a voter; choose one to see the election without it.")] : [];
  return [text, make("ul", { class: "dots", id: "voter-dots" }, ...items), ...hint];
}

/** @param {import("./answers").Election} election */
function lead({ margin, score, near_tie }) {
  if (margin === null || score === null) return [make("p", {}, "There is no other group.")];
  const second = score - margin;
  const text = `${small(margin)} above the next group${near_tie ? ", a near-tie" : ""}`;
  const bars = make("div", { class: "lead numbers" });
  const most = Math.max(score, 0);
  const least = Math.min(0, second);
  bars.append(make("span", {}, "winner"), bar(score - least, most - least), make("span", {}, fixed(score)));
  bars.append(make("span", {}, "next"), bar(second - least, most - least, "likely"), make("span", {}, fixed(second)));
  return [make("p", { id: "margin" }, text), bars];
}

/**
 * The winners of all lists, measure by measure.
 * @param {(import("./answers").MeasureWinners | Error)[]} lists
 * @param {string[]} names
 * @param {string} elected the text that won on this page
 */
function winnerTable(lists, names, elected) {
  const first = lists.find((list) => !(list instanceof Error));
  if (!first || first instanceof Error) return [problem(lists[0])];
  const headings = lists.map((list, i) => {
    const many = list instanceof Error ? 0 : list.candidates;
    return names[i] + (many ? ` (k = ${grouped(many)})` : "");
  });
  /** @type {Line[]} */
  const result = first.measures.map(({ measure }, row) => ({
    measure,
    cells: lists.map((list) => (list instanceof Error ? { why: list.message } : list.measures[row])),
  }));
  /** @param {Line} line */
  const counts = (line) => line.cells.some((cell) => !cell.why);
  const rows = result.filter(counts).map((line) => {
    const name = make("th", { scope: "row" }, ...breakable(line.measure));
    return make("tr", { "data-measure": line.measure }, name, ...line.cells.map((cell) => winnerCell(cell, elected)));
  });
  const table = tableOf({ class: "numbers grid", id: "winner-table" }, "The winner under other similarities", ["Similarity", ...headings], rows);
  const missing = result.filter((line) => !counts(line)).map((line) => `${line.measure} (${line.cells[0].why})`);
  const left = missing.length ? [faint(`Not counted: ${missing.join("; ")}`)] : [];
  return [faint(NOTE), scrolling("Winner by similarity and list", "", table), ...left];
}

/**
 * A name that may be broken after its underscores.
 * @param {string} name
 */
function breakable(name) {
  return name.split(/(?<=_)/).flatMap((part, i) => (i ? [make("wbr"), part] : [part]));
}

/** @param {Cell} result @param {string} elected */
function winnerCell(result, elected) {
  const { text, margin = null, signature = null } = result;
  if (typeof text !== "string") return make("td", { class: "faint" }, result.why ?? "");
  const other = text !== elected.slice(0, CUT);
  const cell = make("td", { class: other ? "other" : null, title: signature }, brief({ text }));
  if (other) cell.append(" ", make("span", { class: "badge" }, "another"));
  if (result.near_tie) cell.append(" ", make("span", { class: "badge tie" }, "near-tie"));
  cell.append(make("span", { class: "line faint" }, margin === null ? "" : `margin ${small(margin)}`));
  return cell;
}

/**
 * Who wins without single voters.
 * @param {import("./answers").Election} election
 */
function changeTable(election) {
  if (!election.stability.changes.length) return [];
  const voters = votersOf(election);
  const candidates = new Map(election.candidates.rows.map((row) => [row.index, row]));
  const rows = election.stability.changes.map((change) =>
    make(
      "tr",
      {},
      make("td", {}, named(voters.get(change.voter), "voter", change.voter)),
      make("td", {}, fixed(change.weight)),
      make("td", {}, change.winner === null ? "nobody" : named(candidates.get(change.winner), "candidate", change.winner)),
      make("td", {}, small(change.margin)),
    ),
  );
  const caption = "Other winners without single voters";
  const table = tableOf({ class: "numbers grid" }, caption, ["Without", "Weight", "the winner is", "Margin"], rows);
  return [scrolling(caption, "low", table)];
}

/** @param {import("./answers").Stability} result */
function stabilityText(result) {
  const all = counted(result.voters, "voter");
  const tried = result.tried < result.voters ? `the ${grouped(result.tried)} weightiest of ${all}` : `each of ${all}`;
  const least = result.smallest_margin === null ? "" : `; its smallest margin is then ${small(result.smallest_margin)}`;
  const same = `the winner stays the same in ${grouped(result.same)} of ${counted(result.tried, "recount")}`;
  return `Leaving out ${tried}, one at a time, ${same}${least}.`;
}

/** @param {{text: string, more?: number} | undefined} row @param {string} what @param {number} index */
function named(row, what, index) {
  return row ? brief(row) : `${what} ${index}`;
}
