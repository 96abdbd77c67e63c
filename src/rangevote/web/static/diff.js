// Which words of a text are not in another, in its order: what the longest common subsequence leaves out.

/** Pairs of words that are compared; beyond, all between the common beginning and end differs. */
const PAIRS = 4_000_000;

/**
 * Where the units of a text stand that another text does not have; neighbours are one range.
 * @param {import("./ngrams.js").Read} text
 * @param {import("./ngrams.js").Read} other
 */
export function differences(text, other) {
  const [ours, theirs] = [text, other].map(({ units }) => units.map(({ unit }) => unit));
  const flags = differing(ours, theirs);
  /** @type {[number, number][]} */
  const ranges = [];
  text.units.forEach(({ begin, end }, i) => {
    if (!flags[i]) return;
    if (i && flags[i - 1]) ranges[ranges.length - 1][1] = end;
    else ranges.push([begin, end]);
  });
  return ranges;
}

/**
 * Whether each unit of `text` differs from `other`.
 * @param {string[]} text
 * @param {string[]} other
 * @returns {boolean[]}
 */
function differing(text, other) {
  let begin = 0;
  let [end, ends] = [text.length, other.length];
  while (begin < end && begin < ends && text[begin] === other[begin]) begin++;
  while (end > begin && ends > begin && text[end - 1] === other[ends - 1]) [end, ends] = [end - 1, ends - 1];
  const flags = text.map((_, i) => i >= begin && i < end);
  const [rows, columns] = [end - begin, ends - begin];
  if (!rows || !columns || rows * columns > PAIRS) return flags;
  const width = columns + 1;
  const longest = new Uint16Array((rows + 1) * width); // [i, j]: of what follows both
  for (let i = rows - 1; i >= 0; i--) {
    for (let j = columns - 1; j >= 0; j--) {
      longest[i * width + j] =
        text[begin + i] === other[begin + j]
          ? longest[(i + 1) * width + j + 1] + 1
          : Math.max(longest[(i + 1) * width + j], longest[i * width + j + 1]);
    }
  }
  for (let i = 0, j = 0; i < rows && j < columns; ) {
    if (text[begin + i] === other[begin + j]) {
      flags[begin + i] = false;
      [i, j] = [i + 1, j + 1];
    } else if (longest[(i + 1) * width + j] >= longest[i * width + j + 1]) i++;
    else j++;
  }
  return flags;
}
