// Answers to the page's questions: from the server, or from the block of data in an exported file.

import { withVotes } from "./votes.js";

const block = document.getElementById("answers");

/** @type {Record<string, any> | null} */
const inside = block ? JSON.parse(block.textContent || "{}") : null;

/** Whether the page is a file that holds its own answers. */
export const exported = inside !== null;

/** Why a question has no answer, in words for a person. */
export class Unanswered extends Error {}

/**
 * The answer to a question, as web/page_data.py describes it.
 * @param {string} path as "api/ballots/0?list=0"
 * @returns {Promise<any>}
 */
export async function ask(path) {
  const answer = inside === null ? await fetched(path) : withVotes(inside, path);
  if (answer === undefined) throw new Unanswered("This is not kept in the exported file.");
  if (answer.error !== undefined) throw new Unanswered(answer.error);
  return answer;
}

/** @param {string} path */
async function fetched(path) {
  let response;
  try {
    response = await fetch(path);
  } catch {
    throw new Unanswered("The server does not answer. Is rangevote show still running?");
  }
  try {
    return await response.json();
  } catch {
    throw new Unanswered(`The server answered ${response.status} without a reason.`);
  }
}
