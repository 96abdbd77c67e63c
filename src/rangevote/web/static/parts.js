// Where a candidate's score comes from: each n-gram, each voter, and its own likelihood where that counts.

import { read } from "./ngrams.js";
import { memberBadge } from "./members.js";
import { counted, fixed, small } from "./numbers.js";
import { button, brief, faint, make, output } from "./text.js";
import { bar, barLine, fieldName } from "./top.js";
import { legend, shaded } from "./words.js";

/** Bars that are shown before the reader asks for more. */
const FIRST_BARS = 8;
/** How far sums of rounded numbers may be from the score. */
const ROUNDED = 1e-3;

/**
 * @param {HTMLElement} container
 * @param {import("./answers").Parts} parts
 * @param {import("./words.js").NgramVoters} ngramVoters
 * @param {number} largest what the full shade of a word stands for
 * @param {import("./answers").Text} row the candidate's whole text
 * @param {(voter: number, grade: number) => void} open shows a voter's text beside it
 */
export function showParts(container, parts, ngramVoters, largest, row, open) {
  const { election } = ngramVoters;
  const whole = make("div", { class: "whole" }, ...shaded(row, parts, ngramVoters, largest));
  if (whole.querySelector(".word")) whole.append(legend(largest));
  if (!parts.votes.length) {
    container.replaceChildren(whole, faint(`Under the rule ${election.rule} nobody votes.`));
    return;
  }
  const columns = make("div", { class: "columns" }, ngrams(parts, row, election), votes(parts, ngramVoters, open));
  container.replaceChildren(whole, ...(parts.fields ? [fields(parts.fields)] : []), columns);
}

/**
 * How many voters have each value of JSON.
 * @param {NonNullable<import("./answers").Parts["fields"]>} agreements
 */
function fields(agreements) {
  const rows = agreements.map(([path, value, agree, of, share]) =>
    barLine([fieldName(path), ": ", output(value)], bar(share, 1), `${agree} of ${of}`),
  );
  return make("table", { class: "bars numbers" }, make("caption", {}, "Voters with the same value"), make("tbody", {}, ...rows));
}

/** @typedef {{label: Node | string, note: string, score: number}} Line */

/**
 * @param {import("./answers").Parts} parts
 * @param {import("./answers").Text} row
 * @param {import("./answers").Election} election
 */
function ngrams({ earned, score, likelihood }, row, election) {
  const box = make("div", { class: "by-ngram" }, make("h4", {}, "By n-gram"));
  if (earned === null) {
    box.append(faint(`The similarity ${election.measure.name} does not decompose over n-grams; what each voter gave does.`));
    return box;
  }
  const { text, units } = read(row, election.measure.unit);
  /** @type {Map<string, Line>} */
  const lines = new Map();
  for (const [begin, size, order, earning] of earned) {
    const [first, last] = [units[begin], units[begin + size - 1]];
    const gram = first && last ? text.slice(first.begin, last.end) : text;
    const key = `${order} ${gram}`;
    const line = lines.get(key) ?? { label: output(gram), note: order ? `${order}-gram` : "same text", score: 0 };
    line.score += earning; // later occurrences of a gram are one line
    lines.set(key, line);
  }
  const sorted = [...lines.values()].sort((one, other) => other.score - one.score);
  box.append(...bars(sorted, { count: 0, score: 0 }, score, likelihood, "n-gram"));
  return box;
}

/** @param {import("./answers").Parts} parts @param {import("./words.js").NgramVoters} ngramVoters @param {(voter: number, grade: number) => void} open */
function votes(parts, ngramVoters, open) {
  const lines = parts.votes.map(([voter, weight, grade]) => {
    const label = button("", () => open(voter, grade));
    label.classList.add("plain");
    const row = ngramVoters.voters.get(voter);
    label.append(row ? brief(row) : `voter ${voter}`);
    if (row && row.member !== null) label.prepend(memberBadge(row.member), " ");
    return { label, note: `${small(weight)} × ${fixed(grade)}`, score: weight * grade };
  });
  const box = make("div", { class: "by-voter" }, make("h4", {}, "By voter (weight × grade)"));
  box.append(...bars(lines, parts.votes_rest, parts.score, parts.likelihood, "voter"));
  return box;
}

/**
 * Bars, the candidate's own likelihood, the rest that is not listed, and the sum.
 * @param {Line[]} lines
 * @param {{count: number, score: number}} rest
 * @param {number | null} total
 * @param {number | null} likelihood
 * @param {string} thing
 */
function bars(lines, rest, total, likelihood, thing) {
  const largest = Math.max(...lines.map((line) => Math.abs(line.score)), Math.abs(likelihood ?? 0));
  const body = make("tbody");
  /** @param {Line[]} some */
  const fill = (some) => body.append(...some.map((line) => barRow(line, largest)));
  fill(lines.slice(0, FIRST_BARS));
  const foot = make("tfoot");
  const table = make("table", { class: "bars numbers", "aria-label": `What each ${thing} gave` }, body, foot);
  const left = lines.slice(FIRST_BARS);
  const hidden = left.reduce((before, line) => before + line.score, 0);
  const waiting = sumRow(`${counted(left.length + rest.count, thing)} more`, hidden + rest.score);
  if (left.length + rest.count) foot.append(waiting);
  if (likelihood !== null) foot.append(barRow({ label: "evidence", note: "likelihood or scores beside the votes", score: likelihood }, largest, "own"));
  const sum = lines.reduce((before, line) => before + line.score, 0) + rest.score + (likelihood ?? 0);
  foot.append(sumRow("sum = score", total ?? sum, total === null || Math.abs(sum - total) < ROUNDED));
  if (!left.length) return [table];
  const more = button(`Show ${counted(left.length, thing)} more`, () => {
    fill(left);
    if (rest.count) waiting.replaceWith(sumRow(`${counted(rest.count, thing)} more`, rest.score));
    else waiting.remove();
    more.remove();
  });
  return [table, more];
}

/** @param {Line} line @param {number} largest @param {string} [kind] */
function barRow(line, largest, kind) {
  const note = make("span", { class: "faint note" }, line.note);
  return barLine([line.label, " ", note], bar(line.score, largest), fixed(line.score, 5), kind);
}

/** @param {string} label @param {number} score @param {boolean} [right] */
function sumRow(label, score, right = true) {
  return barLine([label], "", `${fixed(score, 5)}${right ? "" : " (differs from the score)"}`);
}
