// How firm the winner is: under other measures and lists, and without single voters.

import { brief, faint, make, problem, scrolling } from "./text.js";
import { counted, fixed, grouped, small } from "./numbers.js";
import { voterTexts } from "./parts.js";

const NOTE =
  "Everything but the measure is as in the election above; blend has its own temperature if none was given, and under " +
  "BLEU and chrF the election is minimum Bayes risk decoding. A marked cell elects another text than the one above.";

/** @typedef {Partial<import("./answers").Won>} Cell a winner, or `why` there is none */
/** @typedef {{measure: string, cells: Cell[]}} Line */

/**
 * The winners of all lists, measure by measure.
 * @param {HTMLElement} container
 * @param {(import("./answers").Winners | Error)[]} lists answers of api/ballots/N/winners, or why there is none
 * @param {string[]} names of the lists
 * @param {string} elected the text that won on this page
 */
export function showWinners(container, lists, names, elected) {
  const known = lists.find((list) => !(list instanceof Error));
  if (!known || known instanceof Error) {
    container.replaceChildren(problem(lists[0]));
    return;
  }
  const headings = lists.map((list, i) => {
    const many = list instanceof Error ? 0 : list.candidates;
    return make("th", { scope: "col" }, names[i] + (many ? ` (k = ${grouped(many)})` : ""));
  });
  /** @type {Line[]} */
  const result = known.measures.map(({ measure }, row) => ({
    measure,
    cells: lists.map((list) => (list instanceof Error ? { why: list.message } : list.measures[row])),
  }));
  /** @param {Line} line */
  const counts = (line) => line.cells.some((cell) => !cell.why);
  const rows = result.filter(counts).map((line) => winnerRow(line, elected));
  const head = make("tr", {}, make("th", { scope: "col" }, "Measure"), ...headings);
  const table = make("table", { class: "numbers grid", id: "winner-table", "aria-labelledby": "winners-title" });
  table.append(make("thead", {}, head), make("tbody", {}, ...rows));
  container.replaceChildren(faint(NOTE), scrolling("Winner by measure and list", "", table));
  const missing = result.filter((line) => !counts(line));
  if (!missing.length) return;
  container.append(faint(`Not counted: ${missing.map((line) => `${line.measure} (${line.cells[0].why})`).join("; ")}`));
}

/** @param {Line} line @param {string} elected */
function winnerRow({ measure, cells }, elected) {
  const name = make("th", { scope: "row" }, ...breakable(measure));
  return make("tr", { "data-measure": measure }, name, ...cells.map((cell) => winnerCell(cell, elected)));
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
  if (result.why) return make("td", { class: "faint" }, result.why);
  const { text = "", margin = null, signature = "" } = result;
  const other = text !== elected;
  const cell = make("td", { class: other ? "other" : null, title: signature }, brief({ text }));
  if (other) cell.append(" ", make("span", { class: "badge" }, "another"));
  if (result.near_tie) cell.append(" ", make("span", { class: "badge tie" }, "near-tie"));
  cell.append(make("span", { class: "line faint" }, margin === null ? "" : `margin ${small(margin)}`));
  return cell;
}

/**
 * @param {HTMLElement} container
 * @param {import("./answers").Stability} result the answer api/ballots/N/stability
 * @param {import("./answers").Election} election
 */
export function showStability(container, result, election) {
  container.replaceChildren(make("p", {}, result.why ? `Not tried: ${result.why}` : stabilityText(result)));
  if (!result.changes.length) return;
  const voters = voterTexts(election);
  const candidates = new Map(election.candidates.rows.map((row) => [row.index, row]));
  const rows = result.changes.map((change) =>
    make(
      "tr",
      {},
      make("td", {}, named(voters.get(change.voter), "voter", change.voter)),
      make("td", {}, fixed(change.weight)),
      make("td", {}, named(candidates.get(change.winner), "candidate", change.winner)),
      make("td", {}, small(change.margin)),
    ),
  );
  const titles = ["Without", "Weight", "the winner is", "Margin"].map((title) => make("th", { scope: "col" }, title));
  const table = make("table", { class: "numbers grid", "aria-labelledby": "stability-title" });
  table.append(make("thead", {}, make("tr", {}, ...titles)), make("tbody", {}, ...rows));
  container.append(scrolling("Other winners without single voters", "low", table));
}

/** @param {import("./answers").Stability} result */
function stabilityText(result) {
  const all = counted(result.voters, "voter");
  const tried = result.tried < result.voters ? `the ${grouped(result.tried)} weightiest of ${all}` : `each of ${all}`;
  const least = result.smallest_margin === null ? "" : `; its smallest margin is then ${small(result.smallest_margin)}`;
  const same = `the winner stays the same in ${grouped(result.same)} of ${counted(result.tried, "election")}`;
  return `Leaving out ${tried}, one at a time, ${same}${least}.`;
}

/** @param {{text: string, more?: number} | undefined} row @param {string} what @param {number} index */
function named(row, what, index) {
  return row ? brief(row) : `${what} ${index}`;
}
