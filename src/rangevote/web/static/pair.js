// A voter's and a candidate's text beside each other, the n-grams that they share marked.

import { memberBadge } from "./members.js";
import { button, faint, make, output, problem, scrolling } from "./text.js";
import { counted, fixed, small } from "./numbers.js";
import { read, shared } from "./ngrams.js";

/** Marks in one text beyond which the rest stands unmarked, so that the page stays quick. */
const MARKS = 5000;

/**
 * @typedef {object} Pair
 * @property {(role: string, index: number) => Promise<import("./answers").Text>} whole asks for a text in full
 * @property {import("./answers").Election} election
 * @property {import("./answers").Voter} voter its row
 * @property {import("./answers").Candidate} candidate its row
 * @property {number | null} grade
 */

/**
 * The pair as it comes with the election, texts that were cut included.
 * @param {HTMLElement} panel
 * @param {Pair} pair
 */
export function showPair(panel, pair) {
  const { measure } = pair.election;
  const [voter, candidate] = [pair.voter, pair.candidate].map((row) => {
    return { ...read(row, measure.unit), raw: row.text };
  });
  panel.replaceChildren(...content(pair, voter, candidate));
  const cut = pair.voter.more || pair.candidate.more;
  if (cut) panel.append(button("Show both in full", () => showWhole(panel, pair)));
}

/** @param {HTMLElement} panel @param {Pair} pair */
async function showWhole(panel, pair) {
  const { election, voter, candidate } = pair;
  try {
    const role = election.voters.same ? "candidates" : "voters";
    const texts = await Promise.all([whole(pair, role, voter), whole(pair, "candidates", candidate)]);
    panel.replaceChildren(...content(pair, texts[0], texts[1]));
  } catch (error) {
    panel.append(problem(error));
  }
}

/** @typedef {import("./ngrams.js").Read & {raw: string}} Whole */

/**
 * The text in full, with its units.
 * @param {Pair} pair
 * @param {string} role
 * @param {import("./answers").Text} row
 */
async function whole(pair, role, row) {
  const all = row.more ? await pair.whole(role, row.index) : row;
  return { ...read(all, pair.election.measure.unit), raw: all.text };
}

/** @param {Pair} pair @param {Whole} voter @param {Whole} candidate */
function content(pair, voter, candidate) {
  const { measure } = pair.election;
  const orders = measure.orders.length ? measure.orders : [1];
  const texts = make("div", { class: "texts" });
  const status = make("p", { role: "status", id: "shared-count" });
  const choice = make("select", { id: "order", "aria-label": "Order of the n-grams that are marked" }, ...orders.map((n) => make("option", { value: n }, String(n))));
  const draw = () => {
    const n = Number(choice.value);
    const both = shared(voter, candidate, n, measure);
    status.textContent = `The candidate has ${both.both} of the voter's ${counted(both.all, `${n}-gram`)}.`;
    texts.replaceChildren(
      column("Voter", pair.voter.member, voter, both.voter),
      column(`Candidate of rank ${pair.candidate.rank}`, pair.candidate.member, candidate, both.candidate),
    );
  };
  choice.value = String(orders.includes(2) ? 2 : orders[0]);
  choice.addEventListener("change", draw);
  draw();
  const parts = [texts, make("p", { class: "numbers", id: "pair-grade" }, gradeOf(pair)), status];
  if (orders.length > 1) parts.push(make("label", {}, "Mark n-grams of order ", choice));
  if (!measure.orders.length) {
    const hint = `The similarity ${measure.name} does not count n-grams; shared words are marked for reading only.`;
    parts.push(faint(hint));
  }
  return parts;
}

/** @param {Pair} pair */
function gradeOf({ grade, voter, election }) {
  if (grade === null) return `The grade by ${election.measure.name} is not counted here.`;
  return `grade ${fixed(grade)} × weight ${small(voter.weight)} = ${small(grade * voter.weight)} by ${election.measure.name}`;
}

/** @param {string} title @param {string | null} member @param {Whole} text @param {[number, number][]} ranges */
function column(title, member, text, ranges) {
  const box = scrolling(title, "text");
  box.append(output(text.text, ranges.slice(0, MARKS)));
  if (text.text !== text.raw) box.append(make("p", { class: "faint" }, "The text: ", output(text.raw)));
  const part = make("div", {}, make("h3", {}, title, ...(member === null ? [] : [" ", memberBadge(member)])), box);
  if (ranges.length > MARKS) part.append(faint(`The first ${counted(MARKS, "mark")} are shown.`));
  return part;
}
