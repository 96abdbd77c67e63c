// Words are shaded by what their n-grams earned; pointing at a word shows who else says it.

import { counted, fixed, percent } from "./numbers.js";
import { grams, read } from "./ngrams.js";
import { brief, codeRanges, faint, make, output } from "./text.js";
import { append } from "./unseen.js";

/** Shades, and words beyond which a text stands without them, so that the page stays quick. */
const SHADES = 5;
const MOST_WORDS = 3000;
/** Voters whose texts are shown for a word. */
const VOTERS = 4;

/**
 * The voters that are listed: the candidates, where these vote.
 * @param {import("./answers").Election} election
 * @returns {Map<number, import("./answers").Voter>}
 */
export function votersOf(election) {
  const rows = election.voters.same ? election.candidates.rows : election.voters.rows;
  return new Map(rows.map((row) => [row.index, row]));
}

/**
 * What each unit of a text earned: an equal part of every n-gram over it.
 * @param {NonNullable<import("./answers").Parts["earned"]>} earned
 * @param {number} units
 */
export function wordVotes(earned, units) {
  const votes = new Array(units).fill(0);
  for (const [begin, size, , score] of earned) {
    for (let at = begin; at < begin + size && at < units; at++) votes[at] += score / size;
  }
  return votes;
}

/** Who says which n-gram, among the voters that are listed. */
export class NgramVoters {
  /** @param {import("./answers").Election} election */
  constructor(election) {
    this.election = election;
    this.voters = votersOf(election);
    /** @type {Map<string, Set<number>> | null} */
    this.index = null;
  }

  /**
   * The voters with an n-gram that the measure counts over unit `at`, the candidate itself left out.
   * @param {import("./ngrams.js").Read} text
   * @param {number} at
   * @param {number} candidate
   */
  of(text, at, candidate) {
    const { measure, voters } = this.election;
    this.index ??= this.read();
    /** @type {Set<number>} */
    const indices = new Set();
    for (const order of measure.orders.length ? measure.orders : [1]) {
      const around = { ...text, units: text.units.slice(Math.max(0, at - order + 1), at + order) };
      for (const { key } of grams(around, order, measure.short)) for (const v of this.index.get(key) ?? []) indices.add(v);
    }
    if (voters.same) indices.delete(candidate);
    return [...indices].flatMap((v) => this.voters.get(v) ?? []);
  }

  read() {
    const { measure } = this.election;
    const index = new Map();
    for (const [voter, row] of this.voters) {
      const text = read(row, measure.unit);
      for (const order of measure.orders.length ? measure.orders : [1]) {
        for (const { key } of grams(text, order, measure.short)) {
          if (!index.has(key)) index.set(key, new Set());
          index.get(key).add(voter);
        }
      }
    }
    return index;
  }
}

/**
 * A text with its words shaded, and a line that says who else says the word that is pointed at.
 * @param {import("./answers").Text} row
 * @param {import("./answers").Parts} parts
 * @param {NgramVoters} ngramVoters
 * @param {number} largest what full shade stands for
 */
export function shaded(row, parts, ngramVoters, largest) {
  const { measure } = ngramVoters.election;
  const text = read(row, measure.unit);
  const whole = parts.earned?.every(([, , order]) => order === 0); // texts are compared as a whole
  if (!parts.earned || whole || !text.units.length || text.units.length > MOST_WORDS) return [output(row.text)];
  const votes = wordVotes(parts.earned, text.units.length);
  const note = make("div", { class: "word-note faint", role: "status" }, "Point at a word, or use the arrow keys, to see who else says it.");
  const box = make("div", { class: "words", role: "group", "aria-label": "Words, shaded by their votes" });
  const shown = make("bdi", { class: codeRanges(text.text).length ? "output code" : "output", dir: "auto" });
  let done = 0;
  text.units.forEach(({ begin, end }, i) => {
    append(shown, text.text.slice(done, begin));
    const shade = largest > 0 ? Math.ceil((SHADES * Math.max(0, votes[i])) / largest) : 0;
    const word = make("span", { class: `word s${Math.min(SHADES, shade)}`, role: "button", tabindex: i ? -1 : 0, "data-at": i });
    append(word, text.text.slice(begin, end));
    shown.append(word);
    done = end;
  });
  append(shown, text.text.slice(done));
  box.append(shown);
  /** @param {Event} event */
  const tell = (event) => {
    const word = event.target instanceof Element ? event.target.closest(".word") : null;
    if (!(word instanceof HTMLElement)) return;
    const at = Number(word.dataset.at);
    note.replaceChildren(...sentence(text, at, votes[at], row.index, parts, ngramVoters));
    note.classList.remove("faint");
  };
  for (const kind of ["mouseover", "focusin", "click"]) box.addEventListener(kind, tell);
  box.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => walk(event, box));
  return [box, note];
}

/**
 * Arrow keys go from word to word; one stop of the tab key for all.
 * @param {KeyboardEvent} event
 * @param {HTMLElement} box
 */
function walk(event, box) {
  if (event.altKey || event.ctrlKey || event.metaKey || !(event.target instanceof HTMLElement)) return;
  const words = /** @type {HTMLElement[]} */ ([...box.querySelectorAll(".word")]);
  const at = words.indexOf(event.target);
  /** @type {Record<string, number>} */
  const moves = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0, End: words.length - 1 };
  const to = words[moves[event.key]];
  if (at < 0 || !to) return;
  event.preventDefault();
  words[at].tabIndex = -1;
  to.tabIndex = 0;
  to.focus();
}

/**
 * What a word earned, and who says it too.
 * @param {import("./ngrams.js").Read} text
 * @param {number} at
 * @param {number} vote
 * @param {number} candidate
 * @param {import("./answers").Parts} parts
 * @param {NgramVoters} ngramVoters
 */
function sentence(text, at, vote, candidate, parts, ngramVoters) {
  const { election } = ngramVoters;
  const others = ngramVoters.of(text, at, candidate);
  const all = ngramVoters.voters.size - Number(election.voters.same);
  const votes = (parts.score ?? 0) - (parts.likelihood ?? 0);
  const share = votes > 0 ? ` (${percent(vote / votes)} of its votes)` : "";
  const order = Math.min(...(election.measure.orders.length ? election.measure.orders : [1]));
  const verb = order > 1 ? `say a ${order}-gram with it` : "say it";
  const head = make("p", {}, output(text.units[at].unit), ` earned ${fixed(vote)}${share}; `);
  head.append(`${others.length.toLocaleString("en")} of ${counted(all, election.voters.same ? "other output" : "voter")} ${verb}${others.length ? " too:" : "."}`);
  others.sort((one, other) => other.weight - one.weight);
  const lines = others.slice(0, VOTERS).map((voter) => make("li", {}, brief(voter)));
  if (others.length > VOTERS) lines.push(make("li", { class: "faint" }, `and ${others.length - VOTERS} more`));
  return lines.length ? [head, make("ul", {}, ...lines)] : [head];
}

/**
 * The legend of the shades.
 * @param {number} largest
 */
export function legend(largest) {
  const box = faint("Shade: what the word's n-grams earned, ");
  box.classList.add("shades");
  box.append("0 ", ...Array.from({ length: SHADES + 1 }, (_, i) => make("span", { class: `swatch s${i}` })), ` ${fixed(largest)}`);
  return box;
}
