// The candidates as a list: one line for each group, differences from the winner marked, details when opened.

import { memberColour, memberLegend, writers } from "./members.js";
import { fixed, grouped, percent, probability } from "./numbers.js";
import { bar, leader, ownWords, rowOf } from "./top.js";
import { button, excerpt, faint, make, output, problem } from "./text.js";

/** Groups that are shown before the reader asks for more. */
const FIRST_GROUPS = 25;
const MORE_GROUPS = 200;

/** What candidates can be ordered by; the smaller comes first. */
const ORDERS = {
  score: (/** @type {import("./answers").Candidate} */ row) => row.rank,
  probability: (/** @type {import("./answers").Candidate} */ row) => row.likelihood_rank ?? Infinity,
  length: (/** @type {import("./answers").Candidate} */ row) => -row.length,
};

/**
 * @param {HTMLElement} container
 * @param {import("./answers").Election} election
 * @param {(container: HTMLElement, index: number) => Promise<void>} details fills what is opened
 */
export function showCandidates(container, election, details) {
  const rows = new Map(election.candidates.rows.map((row) => [row.index, row]));
  const groups = election.groups.filter((group) => rows.has(group.candidates[0]));
  const scores = groups.map((group) => rowFrom(rows, group.candidates[0]).score ?? 0);
  const scale = { lowest: Math.min(...scores), best: Math.max(...scores) };
  const list = make("ol", { id: "candidate-list" });
  const more = make("p");
  const view = { order: /** @type {keyof typeof ORDERS} */ ("score"), shown: FIRST_GROUPS };
  const draw = () => {
    const by = ORDERS[view.order];
    /** @param {import("./answers").Group} group */
    const key = (group) => Math.min(...group.candidates.map((index) => by(rowFrom(rows, index))));
    const ordered = view.order === "score" ? groups : [...groups].sort((one, other) => key(one) - key(other));
    list.replaceChildren(...ordered.slice(0, view.shown).map((group) => line(group, election, rows, scale, details)));
    more.replaceChildren();
    const left = groups.length - view.shown;
    if (left > 0) {
      more.append(
        button(`Show ${grouped(Math.min(left, MORE_GROUPS))} more`, () => {
          view.shown += MORE_GROUPS;
          draw();
        }),
        ` ${grouped(left)} groups are not shown.`,
      );
    }
  };
  container.replaceChildren(head(election, scale, (order) => ((view.order = order), draw())), ...memberLegend(election), list, more);
  draw();
}

/** @param {Map<number, import("./answers").Candidate>} rows @param {number} index */
function rowFrom(rows, index) {
  return rows.get(index) ?? /** @type {import("./answers").Candidate} */ (rows.values().next().value);
}

/**
 * What the list is, and in which order.
 * @param {import("./answers").Election} election
 * @param {{lowest: number, best: number}} scale
 * @param {(order: keyof typeof ORDERS) => void} reorder
 */
function head(election, scale, reorder) {
  const { total, rows } = election.candidates;
  const first = leader(election) === "Elected" ? "winner" : "first candidate";
  const note = faint(`Words that the ${first} does not have are marked. `);
  if (scale.best > scale.lowest) note.append(`Bars go from ${fixed(scale.lowest)} to ${fixed(scale.best)}. `);
  if (total > rows.length) note.append(`The first ${grouped(rows.length)} of ${grouped(total)} by rank are listed. `);
  const choice = make("select", { id: "order-by" }, ...Object.keys(ORDERS).map((name) => make("option", { value: name }, name)));
  choice.addEventListener("change", () => reorder(choice.value));
  return make("div", { class: "list-head" }, note, make("label", {}, "Order by ", choice));
}

/**
 * One group.
 * @param {import("./answers").Group} group
 * @param {import("./answers").Election} election
 * @param {Map<number, import("./answers").Candidate>} rows
 * @param {{lowest: number, best: number}} scale
 * @param {(container: HTMLElement, index: number) => Promise<void>} details
 */
function line(group, election, rows, scale, details) {
  const row = rowFrom(rows, group.candidates[0]);
  const number = make("span", { class: "rank numbers", title: "Rank" }, String(row.rank));
  const text = make("span", { class: "text" }, ...(group.answer === null ? [] : [answer(group)]), difference(row, election));
  for (const badge of badges(group, row, election)) text.append(" ", badge);
  const wrote = writers(group.candidates.flatMap((index) => rows.get(index) ?? []));
  if (wrote.length) text.append(make("span", { class: "writers" }, ...wrote));
  const score = make("span", { class: "score numbers" }, bar((row.score ?? scale.lowest) - scale.lowest, scale.best - scale.lowest), make("span", {}, fixed(row.score)));
  const body = make("div", { class: "opened" });
  const kinds = [row.index === election.winner ? "candidate winner" : "candidate", row.member === null ? "" : `of-member ${memberColour(row.member)}`];
  const box = make("details", { class: kinds.join(" ").trim(), "data-index": row.index });
  box.append(make("summary", {}, number, text, score), body);
  box.addEventListener("toggle", () => {
    if (!box.open || body.childNodes.length) return;
    body.append(facts(row, group, election, rows), make("div", { class: "parts" }, faint("Counting…")));
    details(body.lastChild, row.index).catch((error) => body.lastChild.replaceChildren(problem(error)));
  });
  return make("li", {}, box);
}

/** @param {import("./answers").Group} group */
function answer(group) {
  return make("span", { class: "answer" }, make("strong", {}, output(group.answer ?? "")), ` ${percent(group.share ?? 0)} of the vote`);
}

/**
 * A candidate's text with what the winner does not have marked; of a long one, the first such passage.
 * @param {import("./answers").Candidate} row
 * @param {import("./answers").Election} election
 */
function difference(row, election) {
  const winner = rowOf(election, election.winner);
  if (row === winner) return excerpt(row, [], 0);
  const ranges = ownWords(row, winner, election);
  return excerpt(row, ranges, ranges[0]?.[0] ?? 0);
}

/**
 * What is special about a group.
 * @param {import("./answers").Group} group
 * @param {import("./answers").Candidate} row
 * @param {import("./answers").Election} election
 */
function badges(group, row, election) {
  /** @type {Node[]} */
  const result = [];
  /** @param {string} kind @param {string} text @param {string} [title] */
  const badge = (kind, text, title) => result.push(make("span", { class: `badge ${kind}`, title: title ?? null }, text));
  if (group.candidates.length > 1) badge("", `× ${grouped(group.candidates.length)}`, "so many candidates that the similarity cannot tell apart");
  const order = election.elected.indexOf(row.index);
  if (order === 0) badge("won", leader(election) === "Elected" ? "winner" : leader(election).toLowerCase());
  if (order > 0) badge("won", `elected ${order + 1}.`);
  if (election.most_likely !== null && group.candidates.includes(election.most_likely)) badge("likely", "most likely");
  if (!row.finished) badge("", "cut off", "the model did not end it");
  const was = row.original_rank;
  if (was !== null && was !== row.rank) badge(was > row.rank ? "up" : "down", `${was > row.rank ? "▲" : "▼"} was ${was}`);
  return result;
}

/**
 * The numbers of a candidate.
 * @param {import("./answers").Candidate} row
 * @param {import("./answers").Group} group
 * @param {import("./answers").Election} election
 * @param {Map<number, import("./answers").Candidate>} rows
 */
function facts(row, group, election, rows) {
  const list = make("dl", { class: "facts numbers" });
  /** @param {string} name @param {...(Node | string)} content */
  const fact = (name, ...content) => list.append(make("div", {}, make("dt", {}, name), make("dd", {}, ...content)));
  fact("Score", fixed(row.score, 6));
  fact("Probability", probability(row), ...(row.share === null ? [] : [` (${percent(row.share)} of these)`]));
  if (row.likelihood_rank !== null) fact("Rank by P", grouped(row.likelihood_rank));
  fact("Length", `${grouped(row.length)} ${election.length_in}`);
  if (row.supporters !== null) fact("Votes for", `${grouped(row.supporters)} of ${grouped(election.voters.total)}`);
  const wrote = writers(group.candidates.flatMap((index) => rows.get(index) ?? []), true);
  if (wrote.length) fact(wrote.length > 1 ? "Members" : "Member", ...wrote);
  const others = group.candidates.slice(1).flatMap((index) => rows.get(index) ?? []);
  const different = others.filter((other) => other.text !== row.text);
  if (different.length) fact("The same to the similarity", make("ul", {}, ...different.slice(0, 10).map((other) => make("li", {}, excerpt(other, [], 0)))));
  return list;
}
