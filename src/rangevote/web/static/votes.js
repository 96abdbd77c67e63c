// What an exported file leaves out: votes that follow from grades and weights.

/** Votes of one candidate that are listed, as PARTS in web/api.py. */
const LISTED = 200;
const PARTS_PATH = /^(.*)\/candidates\/\d+(\?list=\d+)$/;

/**
 * The answer to a question as the server would give it; undefined where there is none.
 * @param {Record<string, any>} answers by their paths, as in an exported file
 * @param {string} path
 * @returns {any}
 */
export function withVotes(answers, path) {
  const [answer, place] = [answers[path], PARTS_PATH.exec(path)];
  if (!answer || answer.votes || !place) return answer;
  const [, ballot, list] = place;
  return { ...answer, ...votesFor(answer.index, answers[`${ballot}/grades${list}`], answers[`${ballot}${list}`]) };
}

/**
 * @param {number} index of the candidate
 * @param {import("./answers").Grades} graded
 * @param {import("./answers").Election} election
 * @returns {Pick<import("./answers").Parts, "votes" | "votes_rest">}
 */
function votesFor(index, graded, election) {
  const weights = new Map(election.voters.rows.map((row) => [row.index, row.weight]));
  const column = graded.candidates.indexOf(index);
  /** @type {import("./answers").Parts["votes"]} */
  const votes = graded.voters.map((voter, row) => [voter, weights.get(voter) ?? 0, graded.grades[row][column]]);
  votes.sort((one, other) => other[1] * other[2] - one[1] * one[2] || one[0] - other[0]);
  const left = votes.slice(LISTED);
  const score = left.reduce((before, vote) => before + vote[1] * vote[2], 0);
  return { votes: votes.slice(0, LISTED), votes_rest: { count: left.length, score } };
}
