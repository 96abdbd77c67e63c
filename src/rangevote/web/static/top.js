// The top of the page: what was asked, who won and why; then the winner beside the most likely output.

import { differences } from "./diff.js";
import { read } from "./ngrams.js";
import { memberBadge } from "./members.js";
import { fixed, grouped, percent, small } from "./numbers.js";
import { excerpt, longer, make, output } from "./text.js";
import { legend, shaded, wordVotes } from "./words.js";

/** References that are shown. */
const REFERENCES = 5;

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
 * Source, winner, the reason, and how clear it was.
 * @param {import("./answers").Election} election
 */
export function outcome(election) {
  const { ballot } = election;
  const before = [];
  if (ballot.image !== null) before.push(make("img", { src: ballot.image, alt: "The picture that the outputs are about", id: "picture" }));
  if (ballot.source !== null) before.push(labelled("Source", "source", longer(ballot.source)));
  const winner = rowOf(election, election.winner);
  const text = make("div", { id: "winner", class: winner.text.length > 200 ? "long" : null }, winner.text.length > 200 ? longer(winner.text) : output(winner.text));
  const why = make("p", { id: "why" });
  for (const [part, quoted] of election.why) why.append(quoted ? make("q", {}, output(part)) : part);
  const votes = make("div", { id: "winner-votes" });
  const by = winner.member === null ? [] : [make("p", { id: "winner-member" }, memberBadge(winner.member))];
  let after = [labelled("Elected", "elected", text, ...by, votes), why, chips(election)];
  if (election.no_winner !== null) after = [labelled("No winner", "none", why), labelled(leader(election), "best", text, ...by, votes), chips(election)];
  if (election.merged) {
    const none = make("p", { id: "why" }, election.merged.equal === null ? "No single output says all of this." : "");
    after = [labelled("Elected, merged field by field", "elected", mergedObject(election.merged)), none, chips(election)];
  }
  if (ballot.references.length) after.push(references(election));
  const box = make("div", { class: ballot.image === null ? "hero" : "hero pictured" });
  box.append(make("div", { class: "asked" }, ...before), make("div", { class: "answered" }, ...after));
  return box;
}

/**
 * What the first candidate is called: where there is no winner, or one that was merged, it is not the winner.
 * @param {import("./answers").Election} election
 */
export function leader({ no_winner, merged, score }) {
  if (no_winner !== null) return score ? "Highest score" : "First candidate";
  return merged && merged.equal === null ? "Best whole output" : "Elected";
}

/**
 * The merged object, and how much of the vote each of its fields has.
 * @param {import("./answers").MergedObject} merged
 */
function mergedObject({ text, shares, left_out }) {
  const rows = Object.entries(shares).map(([path, share]) => barLine([fieldName(path)], bar(share, 1), percent(share)));
  rows.push(...left_out.map((path) => barLine([fieldName(path)], "", "no majority, left out")));
  const table = make("table", { class: "numbers", id: "merged-fields" }, make("caption", {}, "Share of the vote for each field"), make("tbody", {}, ...rows));
  return make("div", { class: "columns" }, make("div", { id: "winner", class: "long code" }, output(text)), table);
}

/** @param {string} path of a field of JSON */
export function fieldName(path) {
  return output(path || "the value");
}

/**
 * A line of a table with a bar in it.
 * @param {(Node | string)[]} name
 * @param {Node | string} wide
 * @param {string} words
 * @param {string | null} [kind]
 */
export function barLine(name, wide, words, kind = null) {
  return make("tr", { class: kind }, make("th", { scope: "row" }, ...name), make("td", { class: "wide" }, wide), make("td", {}, words));
}

/** @param {string} label @param {string} name @param {...Node} children */
function labelled(label, name, ...children) {
  return make("div", { class: name }, make("span", { class: "label" }, label), ...children);
}

/** @param {import("./answers").Election} election */
function references(election) {
  const { references: texts } = election.ballot;
  const box = make("details", { id: "references" }, make("summary", {}, texts.length > 1 ? `${grouped(texts.length)} references` : "Reference"));
  box.append(make("ul", {}, ...texts.slice(0, REFERENCES).map((text) => make("li", {}, longer(text)))));
  if (texts.length > REFERENCES) box.append(make("p", { class: "faint" }, `and ${grouped(texts.length - REFERENCES)} more`));
  return box;
}

/**
 * How clear it was, in a few words each.
 * @param {import("./answers").Election} election
 */
export function chips(election) {
  const { stability, margin, groups, candidates, quality } = election;
  const { answers } = election;
  const box = make("ul", { id: "chips", class: "chips" });
  /** @param {string} kind @param {string} text @param {string} title */
  const chip = (kind, text, title) => box.append(make("li", { class: `chip ${kind}`.trim(), title }, text));
  if (election.no_support) chip("fragile", "No support: nobody votes for the output of another", "The order of ties decided.");
  else if (stability.tried) {
    const { firm } = stability;
    const what = `wins ${grouped(stability.same)} of ${grouped(stability.tried)} recounts without one voter`;
    chip(firm ? "firm" : "fragile", `${firm ? "Firm" : "Fragile"}: ${what}`, "Each voter is left out once; see “How firm” below.");
  }
  if (election.merged) {
    if (margin !== null) chip("", `Smallest lead of a field ${small(margin)}`, "Over what stands against its value.");
  } else if (margin === null) chip("", "No rival: all outputs are in one group", "The similarity cannot tell the candidates apart.");
  else if (election.near_tie) chip("fragile", "Near-tie: rounding could have decided", `The lead is ${small(margin)}.`);
  else chip("", `Lead ${small(margin)} over the next group`, `Score ${fixed(election.score, 6)}.`);
  const many = groups.length === 1 ? "1 group" : `${grouped(groups.length)} groups`;
  chip("", `${many} of ${grouped(candidates.total)} outputs`, "Outputs that the similarity cannot tell apart are one group.");
  if (answers) {
    const many = Object.keys(answers.votes).length;
    const without = answers.abstained ? `; ${grouped(answers.abstained)} without an answer` : "";
    chip("", `${many === 1 ? "1 answer" : `${grouped(many)} answers`}${without}`, "Votes are counted by answers.");
  }
  if (quality && quality.most_likely !== null && election.winner !== election.most_likely) {
    const gain = quality.winner - quality.most_likely;
    const words = Math.abs(gain) < 0.05 ? "as near to" : gain > 0 ? `${gain.toFixed(1)} nearer to` : `${(-gain).toFixed(1)} further from`;
    const numbers = `${quality.metric} ${quality.winner.toFixed(1)}, of the most likely ${quality.most_likely.toFixed(1)}`;
    chip(gain >= 0.05 ? "firm" : gain <= -0.05 ? "fragile" : "", `${words} the references than the most likely`.replace("as near to the references than", "as near to the references as"), numbers);
  }
  return box;
}

/**
 * Winner and most likely output side by side, what differs marked, probability and support as bars.
 * @param {import("./answers").Election} election
 */
export function duel(election) {
  if (election.most_likely === null) return null;
  const [winner, likely] = [rowOf(election, election.winner), rowOf(election, election.most_likely)];
  if (winner === likely || winner.text === likely.text) return null;
  const lowest = Math.min(0, winner.score ?? 0, likely.score ?? 0);
  const most = {
    share: Math.max(winner.share ?? 0, likely.share ?? 0),
    score: Math.max(winner.score ?? 0, likely.score ?? 0) - lowest,
  };
  const box = make("div", { class: "columns duel" });
  box.append(
    side(leader(election), "won", winner, ownWords(winner, likely, election), most, lowest),
    side("Most likely", "likely", likely, ownWords(likely, winner, election), most, lowest),
  );
  return box;
}

/**
 * Where a candidate's words stand that another does not have.
 * @param {import("./answers").Candidate} row
 * @param {import("./answers").Candidate} other
 * @param {import("./answers").Election} election
 */
export function ownWords(row, other, { measure: { unit } }) {
  return unit === "listed" ? [] : differences(read(row, unit), read(other, unit)); // listed units do not stand in the text
}

/**
 * @param {string} title
 * @param {string} kind
 * @param {import("./answers").Candidate} row
 * @param {[number, number][]} ranges
 * @param {{share: number, score: number}} most
 * @param {number} lowest
 */
function side(title, kind, row, ranges, most, lowest) {
  const text = make("p", {}, excerpt(row, ranges, ranges[0]?.[0] ?? 0));
  const bars = make("dl", { class: "pair numbers" });
  if (row.share !== null) bars.append(make("dt", {}, "probability"), barred(row.share, most.share, "likely"), make("dd", {}, percent(row.share)));
  bars.append(make("dt", {}, "support"), barred((row.score ?? 0) - lowest, most.score, "score"), make("dd", {}, fixed(row.score)));
  const by = row.member === null ? [] : [memberBadge(row.member)];
  const place = row.likelihood_rank ? `rank ${grouped(row.rank)} by support, ${grouped(row.likelihood_rank)} by probability` : "";
  return make("article", { class: `card ${kind}` }, make("h3", {}, title), text, ...by, bars, make("p", { class: "faint note" }, place));
}

/** @param {number} value @param {number} largest @param {string} kind */
function barred(value, largest, kind) {
  return make("dd", { class: "wide" }, bar(value, largest, kind));
}

/**
 * A bar of a share of the largest.
 * @param {number} value
 * @param {number} largest
 * @param {string} [kind]
 */
export function bar(value, largest, kind = "score") {
  const inner = make("span", { class: value < 0 ? "negative" : kind });
  inner.style.width = `${largest > 0 ? Math.min(100, (100 * Math.abs(value)) / largest) : 0}%`;
  return make("span", { class: "bar", "aria-hidden": "true" }, inner);
}

/**
 * The winner's words with their votes, where the measure has them.
 * @param {HTMLElement} container the winner's place at the top
 * @param {HTMLElement} below where the page says who else says the word that is pointed at
 * @param {import("./answers").Election} election
 * @param {import("./answers").Parts} parts
 * @param {import("./words.js").NgramVoters} ngramVoters
 */
export function shadeWinner(container, below, election, parts, ngramVoters) {
  const row = rowOf(election, election.winner);
  if (election.merged || !parts.earned || parts.earned.every(([, , order]) => order === 0) || row.more || !row.text.trim()) return;
  const largest = fullShade(election, parts);
  const [words, ...note] = shaded(row, parts, ngramVoters, largest);
  container.replaceChildren(words);
  below.replaceChildren(...note, legend(largest));
}

/**
 * What full shade stands for: the best word of the winner.
 * @param {import("./answers").Election} election
 * @param {import("./answers").Parts} parts of the winner
 */
export function fullShade(election, parts) {
  const row = rowOf(election, election.winner);
  if (!parts.earned) return 0;
  return Math.max(0, ...wordVotes(parts.earned, read(row, election.measure.unit).units.length));
}
