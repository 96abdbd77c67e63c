// How firm the winner is: under other measures and lists, and without single voters.

import { brief, faint, make, problem, scrolling } from "./text.js";
import { counted, fixed, grouped, small } from "./numbers.js";
import { voterTexts } from "./parts.js";

const NOTE =
  "Everything but the measure is as in the election above; blend has its own temperature, and under BLEU and chrF " +
  "the election is minimum Bayes risk decoding. A marked cell elects another text than the one above.";

/** @typedef {Partial<import("./answers").Won>} Cell a winner, or `why` there is none */
/** @typedef {{measure: string, cells: Cell[]}} Line */

/**
 * The winners of all lists, measure by measure.
 * @param {HTMLElement} place
 * @param {(import("./answers").Winners | Error)[]} lists answers of api/ballots/N/winners, or why there is none
 * @param {string[]} names of the lists
 * @param {string} elected the text that won on this page
 */
export function showWinners(place, lists, names, elected) {
  const known = lists.find((list) => !(list instanceof Error));
  if (!known || known instanceof Error) {
    place.replaceChildren(problem(lists[0]));
    return;
  }
  const headings = lists.map((list, i) => {
    const many = list instanceof Error ? 0 : list.candidates;
    return make("th", { scope: "col" }, names[i] + (many ? ` (k = ${grouped(many)})` : ""));
  });
  /** @type {Line[]} */
  const found = known.measures.map(({ measure }, row) => ({
    measure,
    cells: lists.map((list) => (list instanceof Error ? { why: list.message } : list.measures[row])),
  }));
  /** @param {Line} line */
  const counts = (line) => line.cells.some((cell) => !cell.why);
  const rows = found.filter(counts).map((line) => winnerRow(line, elected));
  const head = make("tr", {}, make("th", { scope: "col" }, "Measure"), ...headings);
  const table = make("table", { class: "numbers grid", id: "winner-table", "aria-labelledby": "winners-title" });
  table.append(make("thead", {}, head), make("tbody", {}, ...rows));
  place.replaceChildren(faint(NOTE), scrolling("Winner by measure and list", "", table));
  const missing = found.filter((line) => !counts(line));
  if (!missing.length) return;
  place.append(faint(`Not counted: ${missing.map((line) => `${line.measure} (${line.cells[0].why})`).join("; ")}`));
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

/** @param {Cell} found @param {string} elected */
function winnerCell(found, elected) {
  if (found.why) return make("td", { class: "faint" }, found.why);
  const { text = "", margin = null, signature = "" } = found;
  const other = text !== elected;
  const cell = make("td", { class: other ? "other" : null, title: signature }, brief({ text }));
  if (other) cell.append(" ", make("span", { class: "badge" }, "another"));
  if (found.near_tie) cell.append(" ", make("span", { class: "badge tie" }, "near-tie"));
  cell.append(make("span", { class: "line faint" }, margin === null ? "" : `margin ${small(margin)}`));
  return cell;
}

/**
 * @param {HTMLElement} place
 * @param {import("./answers").Stability} found the answer api/ballots/N/stability
 * @param {import("./answers").Election} election
 */
export function showStability(place, found, election) {
  place.replaceChildren(make("p", {}, found.why ? `Not tried: ${found.why}` : stabilityTold(found)));
  if (!found.changes.length) return;
  const voters = voterTexts(election);
  const candidates = new Map(election.candidates.rows.map((row) => [row.index, row]));
  const rows = found.changes.map((change) =>
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
  place.append(scrolling("Other winners without single voters", "low", table));
}

/** @param {import("./answers").Stability} found */
function stabilityTold(found) {
  const all = counted(found.voters, "voter");
  const tried = found.tried < found.voters ? `the ${grouped(found.tried)} weightiest of ${all}` : `each of ${all}`;
  const least = found.smallest_margin === null ? "" : `; its smallest margin is then ${small(found.smallest_margin)}`;
  const same = `the winner stays the same in ${grouped(found.same)} of ${counted(found.tried, "election")}`;
  return `Leaving out ${tried}, one at a time, ${same}${least}.`;
}

/** @param {{text: string, more?: number} | undefined} row @param {string} what @param {number} index */
function named(row, what, index) {
  return row ? brief(row) : `${what} ${index}`;
}
