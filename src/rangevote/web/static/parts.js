// Where a candidate's score comes from: what each n-gram and each voter gave. Both lists sum to the score.

import { bar } from "./candidates.js";
import { button, brief, faint, make, output, scrolling } from "./text.js";
import { counted, fixed, small } from "./numbers.js";

/** Bars that are shown before the reader asks for more. */
const FIRST = 12;

/**
 * @param {HTMLElement} container
 * @param {import("./answers").Parts} parts
 * @param {import("./answers").Election} election
 * @param {() => Promise<{text: string}>} whole asks for the candidate's whole text
 * @param {(voter: number, grade: number) => void} open shows a voter's text beside it
 */
export function showParts(container, parts, election, whole, open) {
  const row = rowOf(election, parts.index);
  const text = scrolling("The candidate", "text", output(row.text));
  const head = make("div", {}, make("p", {}, `Rank ${row.rank}, score ${fixed(parts.score, 6)}`), text);
  if (row.more) {
    const more = button(`Show ${counted(row.more, "more character")}`, async () => {
      text.replaceChildren(output((await whole()).text));
      more.remove();
    });
    head.append(more);
  }
  if (!parts.votes.length) {
    container.replaceChildren(head, faint(`Under the rule ${election.rule} nobody votes.`));
    return;
  }
  const columns = make("div", { class: "columns" }, ngrams(parts, election), votes(parts, election, open));
  container.replaceChildren(head, columns);
}

/** @param {import("./answers").Parts} parts @param {import("./answers").Election} election */
function ngrams(parts, election) {
  const box = make("div", { id: "ngrams" }, make("h3", {}, "By n-gram"));
  if (parts.ngrams === null) {
    const text = `The measure ${election.measure.name} does not decompose over n-grams; what each voter gave does.`;
    box.append(faint(text));
    return box;
  }
  const lines = parts.ngrams.map(([text, order, score]) => ({
    label: output(text),
    note: order ? `${order}-gram` : "same text",
    score,
  }));
  box.append(...bars(lines, parts.ngrams_rest, parts.score, "n-gram"));
  return box;
}

/** @param {import("./answers").Parts} parts @param {import("./answers").Election} election @param {(voter: number, grade: number) => void} open */
function votes(parts, election, open) {
  const texts = voterTexts(election);
  const lines = parts.votes.map(([voter, weight, grade, score]) => {
    const label = button("", () => open(voter, grade));
    label.classList.add("plain");
    const text = texts.get(voter);
    label.append(text ? brief(text) : `voter ${voter}`);
    return { label, note: `${small(weight)} × ${fixed(grade)}`, score };
  });
  const box = make("div", { id: "votes" }, make("h3", {}, "By voter (weight × grade)"));
  box.append(...bars(lines, parts.votes_rest, parts.score, "voter"));
  return box;
}

/**
 * Voter -> its row, with text.
 * @param {import("./answers").Election} election
 * @returns {Map<number, import("./answers").Text>}
 */
export function voterTexts(election) {
  const rows = election.voters.same ? election.candidates.rows : election.voters.rows;
  return new Map(rows.map((row) => [row.index, /** @type {import("./answers").Text} */ (row)]));
}

/**
 * The row of a candidate that is listed: the winner, the most likely and the first by rank always are.
 * @param {import("./answers").Election} election
 * @param {number} index
 */
export function rowOf(election, index) {
  const candidate = election.candidates.rows.find((row) => row.index === index);
  if (!candidate) throw new Error(`candidate ${index} is not listed`);
  return candidate;
}

/**
 * Bars, the rest that is not listed, and the sum.
 * @param {{label: Node, note: string, score: number}[]} lines
 * @param {{count: number, score: number}} rest
 * @param {number} total
 * @param {string} thing
 */
function bars(lines, rest, total, thing) {
  const largest = Math.max(...lines.map((line) => Math.abs(line.score)), 0);
  const body = make("tbody", { role: "rowgroup" });
  /** @param {typeof lines} some */
  const fill = (some) => body.append(...some.map((line) => barRow(line, largest)));
  fill(lines.slice(0, FIRST));
  const foot = make("tfoot", { role: "rowgroup" });
  const table = make("table", { class: "bars numbers", role: "table" }, body, foot);
  table.setAttribute("aria-label", `What each ${thing} gave`);
  if (rest.count) foot.append(sumRow(`${counted(rest.count, thing)} more`, rest.score));
  const sum = lines.reduce((before, line) => before + line.score, 0) + rest.score;
  foot.append(sumRow("sum = score", sum, Math.abs(sum - total) < 1e-9));
  if (lines.length <= FIRST) return [table];
  const left = lines.slice(FIRST);
  const hidden = left.reduce((before, line) => before + line.score, 0);
  const waiting = sumRow(`${counted(left.length, thing)} not shown here`, hidden);
  foot.prepend(waiting);
  const more = button(`Show ${counted(left.length, thing)} more`, () => {
    fill(left);
    waiting.remove();
    more.remove();
  });
  return [table, more];
}

/** @param {{label: Node, note: string, score: number}} line @param {number} largest */
function barRow(line, largest) {
  const note = make("span", { class: "faint note" }, line.note);
  return make(
    "tr",
    { role: "row" },
    make("th", { scope: "row", role: "rowheader" }, line.label, " ", note),
    make("td", { class: "wide", role: "cell" }, bar(line.score, largest)),
    make("td", { role: "cell" }, fixed(line.score, 6)),
  );
}

/** @param {string} label @param {number} score @param {boolean} [right] */
function sumRow(label, score, right = true) {
  const total = make("td", { role: "cell" }, fixed(score, 6));
  if (!right) total.append(" (differs from the score)");
  const name = make("th", { scope: "row", role: "rowheader" }, label);
  return make("tr", { role: "row" }, name, make("td", { class: "wide", role: "cell" }), total);
}
