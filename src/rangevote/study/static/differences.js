// Two texts in pieces, with the words in which they differ.

import { differing } from "/static/diff.js";

/** A piece of a text; `own` are words that the other text does not have, in this order. */
/** @typedef {{text: string, own: boolean}} Piece */

/**
 * @param {string} one
 * @param {string} other
 * @returns {[Piece[], Piece[]]}
 */
export function differences(one, other) {
  const [a, b] = [words(one), words(other)];
  return [pieces(a, differing(a, b)), pieces(b, differing(b, a))];
}

/** @param {string} text @returns {string[]} words, spaces and single signs */
function words(text) {
  return text.match(/\s+|[\p{L}\p{N}\p{M}_]+|[^\s]/gu) ?? [];
}

/** @param {string[]} tokens @param {boolean[]} flags @returns {Piece[]} */
function pieces(tokens, flags) {
  return tokens.map((text, i) => ({ text, own: flags[i] && text.trim() !== "" }));
}
