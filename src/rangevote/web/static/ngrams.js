// The n-grams that two texts share, made of the units that the server lists.

/** @typedef {{unit: string, begin: number, end: number}} Unit */
/** @typedef {{text: string, units: Unit[]}} Read */

/**
 * A text with the places of its units; units that do not stand in the text are shown instead of it.
 * @param {{text: string, units: string[]}} row
 * @param {string} kind `PageMeasure.unit` in web/api.py
 * @returns {Read}
 */
export function read({ text, units }, kind) {
  const replaced = kind === "listed";
  const shown = replaced ? units.join(" ") : text;
  let end = 0;
  const placed = units.map((one) => {
    const begin = Math.max(end, shown.indexOf(one, end));
    end = begin + one.length;
    return { unit: kind === "words" ? one.toLowerCase() : one, begin, end };
  });
  return { text: shown, units: placed };
}

/**
 * All n-grams in their order; with `short`, a text of fewer units is its own only n-gram.
 * @param {Read} text
 * @param {number} n
 * @param {boolean} short
 */
export function grams({ units }, n, short) {
  const size = short && units.length < n ? units.length : n;
  const result = [];
  for (let i = 0; size && i + size <= units.length; i++) {
    const key = JSON.stringify(units.slice(i, i + size).map((one) => one.unit));
    result.push({ key, begin: units[i].begin, end: units[i + size - 1].end });
  }
  return result;
}

/** @typedef {ReturnType<typeof grams>} Grams */

/**
 * How often each n-gram is there.
 * @param {Grams} grams
 */
function counts(grams) {
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const { key } of grams) counts.set(key, (counts.get(key) || 0) + 1);
  return counts;
}

/**
 * What two texts share: how many n-grams, of how many of the voter, and where they stand in both. In a bag, as
 * many occurrences count as both have.
 * @param {Read} voter
 * @param {Read} candidate
 * @param {number} n
 * @param {{bag: boolean, short: boolean}} measure
 */
export function shared(voter, candidate, n, { bag, short }) {
  const [left, right] = [grams(voter, n, short), grams(candidate, n, short)];
  const [ours, theirs] = [counts(left), counts(right)];
  let both = 0;
  let all = 0;
  for (const [key, count] of ours) {
    all += bag ? count : 1;
    both += Math.min(bag ? count : 1, bag ? theirs.get(key) || 0 : Number(theirs.has(key)));
  }
  return {
    both,
    all,
    voter: ranges(left, (key) => allowed(key, ours, theirs, bag)),
    candidate: ranges(right, (key) => allowed(key, ours, theirs, bag)),
  };
}

/**
 * How many occurrences of an n-gram are marked.
 * @param {string} key
 * @param {Map<string, number>} ours
 * @param {Map<string, number>} theirs
 * @param {boolean} bag
 */
function allowed(key, ours, theirs, bag) {
  const least = Math.min(ours.get(key) || 0, theirs.get(key) || 0);
  return least && !bag ? Infinity : least;
}

/**
 * Where n-grams stand, those that overlap as one range.
 * @param {Grams} grams
 * @param {(key: string) => number} most
 */
function ranges(grams, most) {
  /** @type {[number, number][]} */
  const marked = [];
  const seen = new Map();
  for (const { key, begin, end } of grams) {
    const times = (seen.get(key) || 0) + 1;
    seen.set(key, times);
    if (times > most(key)) continue;
    const last = marked[marked.length - 1];
    if (last && begin < last[1]) last[1] = end;
    else marked.push([begin, end]);
  }
  return marked;
}
