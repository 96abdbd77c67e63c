// A dialog with a voter's and a candidate's text side by side, the n-grams that they share marked.

import { ask } from "./ask.js";
import { button, faint, make, output, problem, scrolling } from "./text.js";
import { counted, fixed, small } from "./numbers.js";
import { read, shared } from "./ngrams.js";

/** Marks in one text beyond which the rest stands unmarked, so that the page stays quick. */
const MARKS = 5000;

/**
 * @typedef {object} Pair
 * @property {string} path of the ballot, as "api/ballots/0"
 * @property {number} list
 * @property {import("./answers").Election} election
 * @property {import("./answers").Text & {weight: number}} voter its row
 * @property {import("./answers").Candidate} candidate its row
 * @property {number | null} grade
 */

/** @param {HTMLDialogElement} dialog @param {Pair} pair */
export async function openPair(dialog, pair) {
  const { election, voter, candidate } = pair;
  const close = button("Close", () => dialog.close());
  const title = make("h2", { id: "pair-title" }, `Voter and candidate of rank ${candidate.rank}`);
  const body = make("div", {}, faint("Loading…"));
  dialog.replaceChildren(make("div", { class: "bar-top" }, title, close), body);
  if (!dialog.open) dialog.showModal();
  close.focus();
  try {
    const role = election.voters.same ? "candidates" : "voters";
    const texts = await Promise.all([whole(pair, role, voter), whole(pair, "candidates", candidate)]);
    body.replaceChildren(...content(pair, texts[0], texts[1]));
  } catch (error) {
    body.replaceChildren(problem(error));
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
  const path = `${pair.path}/text?list=${pair.list}&role=${role}&index=${row.index}`;
  const { text, units } = row.more ? await ask(path) : row;
  return { ...read(text, pair.election.measure.unit, units), raw: text };
}

/** @param {Pair} pair @param {Whole} voter @param {Whole} candidate */
function content(pair, voter, candidate) {
  const { measure } = pair.election;
  const orders = measure.orders.length ? measure.orders : [1];
  const texts = make("div", { class: "columns" });
  const status = make("p", { role: "status", id: "shared-count" });
  const choice = make("select", { id: "order" }, ...orders.map((n) => make("option", { value: n }, String(n))));
  const draw = () => {
    const n = Number(choice.value);
    const both = shared(voter, candidate, n, measure);
    status.textContent = `${both.both} of the voter's ${counted(both.all, `${n}-gram`)} also in the candidate.`;
    texts.replaceChildren(
      column("Voter", voter, both.voter),
      column("Candidate", candidate, both.candidate),
    );
  };
  choice.value = String(orders.includes(2) ? 2 : orders[0]);
  choice.addEventListener("change", draw);
  draw();
  const parts = [make("p", { class: "numbers", id: "pair-grade" }, gradeOf(pair)), status, texts];
  if (orders.length > 1) parts.splice(1, 0, make("label", {}, "Mark n-grams of order ", choice));
  if (!measure.orders.length) {
    const hint = `The measure ${measure.name} does not count n-grams; shared words are marked for reading only.`;
    parts.push(faint(hint));
  }
  return parts;
}

/** @param {Pair} pair */
function gradeOf({ grade, voter, election }) {
  const named = `sim(v, c) = ${grade === null ? "not counted" : fixed(grade)} by ${election.measure.name}`;
  if (grade === null) return named;
  return `${named}, weight ${small(voter.weight)}, so the voter gives ${small(grade * voter.weight)}.`;
}

/** @param {string} title @param {Whole} text @param {[number, number][]} ranges */
function column(title, text, ranges) {
  const box = scrolling(title, "text");
  box.append(output(text.text, ranges.slice(0, MARKS)));
  if (text.text !== text.raw) box.append(make("p", { class: "faint" }, "The text: ", output(text.raw)));
  const part = make("div", {}, make("h3", {}, title), box);
  if (ranges.length > MARKS) part.append(faint(`The first ${counted(MARKS, "mark")} are shown.`));
  return part;
}
