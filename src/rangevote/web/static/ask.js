// Answers to the page's questions: from the server, or from the block of data in an exported file.

const block = document.getElementById("answers");

/**
 * The beginning of paths -> all answers under such paths, compressed.
 * @type {Record<string, string> | null}
 */
const inside = block ? JSON.parse(block.textContent || "{}") : null;
/** @type {Map<string, Promise<Record<string, any>>>} */
const unpacked = new Map();

/** Whether the page is a file that holds its own answers. */
export const exported = inside !== null;

/**
 * The answer to a question, as web/api.py describes it.
 * @param {string} path as "api/ballots/0?list=0"
 * @returns {Promise<any>}
 */
export async function ask(path) {
  const answer = inside === null ? await fetched(path) : (await kept(inside, path))[path];
  if (answer === undefined) throw new Error("This is not in the exported file.");
  if (answer.error !== undefined) throw new Error(answer.error);
  return answer;
}

/**
 * The answers of a file that stand together with this one.
 * @param {Record<string, string>} packed
 * @param {string} path
 */
function kept(packed, path) {
  const start = /^api\/ballots\/\d+/.exec(path)?.[0] ?? "";
  const part = unpacked.get(start) ?? unpack(packed[start]);
  unpacked.set(start, part);
  return part;
}

/**
 * @param {string | undefined} packed
 * @returns {Promise<Record<string, any>>}
 */
async function unpack(packed) {
  if (packed === undefined) return {};
  const bytes = Uint8Array.from(atob(packed), (character) => character.charCodeAt(0));
  const { DecompressionStream } = /** @type {any} */ (globalThis); // some type checkers do not know it
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).json();
}

/** @param {string} path */
async function fetched(path) {
  let response;
  try {
    response = await fetch(path);
  } catch {
    throw new Error("The server does not respond. Is rangevote show still running?");
  }
  try {
    return await response.json();
  } catch {
    throw new Error(`The server answered ${response.status} without a reason.`);
  }
}
