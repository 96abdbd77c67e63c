// The words in which two texts differ.

/** A text in pieces; `own` are words that the other text does not have, at this place. */
/** @typedef {{text: string, own: boolean}} Piece */

/** So many pairs of words are compared at most: a tenth of a second. */
const MOST = 4_000_000;

/**
 * Both texts in pieces; null where they are too long to compare.
 * @param {string} one
 * @param {string} other
 * @returns {[Piece[], Piece[]] | null}
 */
export function differences(one, other) {
  const a = words(one), b = words(other);
  let start = 0, end = 0;
  while (start < Math.min(a.length, b.length) && a[start] === b[start]) start++;
  while (end < Math.min(a.length, b.length) - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  const middle = shared(a.slice(start, a.length - end), b.slice(start, b.length - end));
  if (!middle) return null;
  /** @param {string[]} tokens @param {Set<number>} common */
  const pieces = (tokens, common) =>
    tokens.map((text, i) => {
      const kept = i < start || i >= tokens.length - end || common.has(i - start);
      return { text, own: !kept && text.trim() !== "" };
    });
  return [pieces(a, middle[0]), pieces(b, middle[1])];
}

/** @param {string} text @returns {string[]} words, spaces and single signs */
function words(text) {
  return text.match(/\s+|[\p{L}\p{N}\p{M}_]+|[^\s]/gu) ?? [];
}

/**
 * Which places of each list belong to a longest common subsequence.
 * @param {string[]} a
 * @param {string[]} b
 * @returns {[Set<number>, Set<number>] | null}
 */
function shared(a, b) {
  const width = b.length + 1;
  if (a.length * b.length > MOST) return null;
  const lengths = new Uint16Array((a.length + 1) * width); // of the rest of both lists
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      lengths[i * width + j] =
        a[i] === b[j] ? lengths[(i + 1) * width + j + 1] + 1 : Math.max(lengths[(i + 1) * width + j], lengths[i * width + j + 1]);
    }
  }
  /** @type {[Set<number>, Set<number>]} */
  const common = [new Set(), new Set()];
  for (let i = 0, j = 0; i < a.length && j < b.length; ) {
    if (a[i] === b[j]) {
      common[0].add(i++);
      common[1].add(j++);
    } else if (lengths[(i + 1) * width + j] >= lengths[i * width + j + 1]) i++;
    else j++;
  }
  return common;
}
