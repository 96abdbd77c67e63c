// What each voter gave a candidate, where an exported file leaves it out: its weight times its grade.

/** Votes of one candidate that are listed, as PARTS in web/page_data.py. */
const LISTED = 200;
const PARTS_PATH = /^(.*)\/candidates\/\d+(\?list=\d+)$/;

/**
 * The answer to a question as the server would give it; undefined where there is none.
 * @param {Record<string, any>} answers by their paths, as in an exported file
 * @param {string} path
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
  const votes = graded.voters.map((voter, row) => {
    const [weight, grade] = [weights.get(voter) ?? 0, graded.grades[row][column]];
    return [voter, weight, grade, weight * grade];
  });
  votes.sort((one, other) => other[3] - one[3] || one[0] - other[0]);
  const left = votes.slice(LISTED);
  const score = left.reduce((before, vote) => before + vote[3], 0);
  return { votes: votes.slice(0, LISTED), votes_rest: { count: left.length, score } };
}
