// The election page: which ballot, its outcome first, then what is slower to count.

import { ask } from "./ask.js";
import { at, showPosition, startPicker } from "./ballots.js";
import { markChosen, showCandidates } from "./candidates.js";
import { showStability, showWinners } from "./robustness.js";
import { showGrades } from "./grades.js";
import { fixed, probability, small } from "./numbers.js";
import { openPair } from "./pair.js";
import { rowOf, showParts, voterTexts } from "./parts.js";
import { brief, faint, longer, make, problem, why } from "./text.js";
import { append } from "./unseen.js";

/** What is looked at; kept in the address, so that a reload and a link show the same. */
const position = { number: 0, list: 0 };
/** Count what was asked for: answers to an older question are dropped. */
let turn = 0;
let choice = 0;
/** @type {import("./answers").About} */
let about;

/**
 * An election that is on the page.
 * @typedef {object} Shown
 * @property {string} path of its ballot, as "api/ballots/0"
 * @property {number} list
 * @property {import("./answers").Election} election
 * @property {() => boolean} current whether the reader still looks at it
 */

/** @param {string} message */
function complain(message) {
  at("problem").replaceChildren();
  append(at("problem"), message);
  at("problem").hidden = !message;
  if (message) at("status").textContent = "";
}

/**
 * Look elsewhere.
 * @param {{number?: number, list?: number}} wanted
 */
function go(wanted) {
  const number = Math.max(0, Math.min(about.kept - 1, wanted.number ?? position.number));
  location.hash = `ballot=${number + 1}&list=${(wanted.list ?? position.list) + 1}`;
}

/** The position that the address names. */
function fromAddress() {
  const named = new URLSearchParams(location.hash.slice(1));
  /** @param {string} name @param {number} many */
  const within = (name, many) => {
    const number = Number(named.get(name) ?? 1);
    return Number.isInteger(number) && number >= 1 && number <= many ? number - 1 : 0;
  };
  position.number = within("ballot", about.kept);
  position.list = within("list", about.lists.length);
}

async function show() {
  const mine = ++turn;
  delete document.documentElement.dataset.complete;
  fromAddress();
  complain("");
  showPosition(about, position, null);
  at("status").textContent = "Counting votes…";
  const [path, list] = [`api/ballots/${position.number}`, position.list];
  try {
    /** @type {import("./answers").Election} */
    const election = await ask(`${path}?list=${list}`);
    if (mine !== turn) return;
    showPosition(about, position, election.ballot.id);
    const shown = { path, list, election, current: () => mine === turn };
    showFirst(shown);
    await showRest(shown);
  } catch (error) {
    if (mine !== turn) return;
    at("election").hidden = true;
    complain(why(error));
  }
}

/**
 * The outcome and the candidates.
 * @param {Shown} shown
 */
function showFirst(shown) {
  at("election").hidden = false;
  at("status").textContent = "";
  at("outcome").replaceChildren(outcome(shown.election));
  showCandidates(at("candidates"), shown.election, (index) => showPart(shown, index));
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
}

/**
 * What takes longer, each part as its answer comes.
 * @param {Shown} shown
 */
async function showRest(shown) {
  const { path, list, election, current } = shown;
  for (const name of ["parts", "grades", "winners", "stability"]) at(name).replaceChildren(faint("Counting…"));
  await showPart(shown, election.winner);
  await fill("grades", current, ask(`${path}/grades?list=${list}`), (graded) =>
    showGrades(at("grades"), graded, election, (voter, candidate, grade) => pairUp(shown, voter, candidate, grade)),
  );
  await fill("stability", current, ask(`${path}/stability?list=${list}`), (answer) =>
    showStability(at("stability"), answer, election),
  );
  const names = about.lists.map((one) => one.name);
  const asked = names.map((_, i) => ask(`${path}/winners?list=${i}`).catch((error) => error));
  const elected = rowOf(election, election.winner);
  await fill("winners", current, Promise.all(asked), (answer) => showWinners(at("winners"), answer, names, elected.text));
  if (current()) document.documentElement.dataset.complete = String(Math.round(performance.now()));
}

/**
 * Fill one part of the page when its answer is there, or say why it is not.
 * @param {string} name
 * @param {() => boolean} current
 * @param {Promise<any>} asked
 * @param {(answer: any) => void} use
 */
async function fill(name, current, asked, use) {
  try {
    const answer = await asked;
    if (current()) use(answer);
  } catch (error) {
    if (current()) at(name).replaceChildren(problem(error));
  }
}

/**
 * Take one candidate's score apart.
 * @param {Shown} shown
 * @param {number} index
 */
async function showPart(shown, index) {
  const { path, list, election } = shown;
  const mine = ++choice;
  markChosen(at("candidates"), index);
  const whole = () => ask(`${path}/text?list=${list}&role=candidates&index=${index}`);
  await fill("parts", () => mine === choice, ask(`${path}/candidates/${index}?list=${list}`), (parts) =>
    showParts(at("parts"), parts, election, whole, (voter, grade) => pairUp(shown, voter, index, grade)),
  );
}

/**
 * Show a voter's and a candidate's text.
 * @param {Shown} shown
 * @param {number} voter
 * @param {number} candidate
 * @param {number | null} grade
 */
function pairUp({ path, list, election }, voter, candidate, grade) {
  const weight = election.voters.rows.find((row) => row.index === voter)?.weight ?? 0;
  const row = rowOf(election, candidate);
  const text = voterTexts(election).get(voter);
  if (text) openPair(at("pair"), { path, list, election, voter: { ...text, weight }, candidate: row, grade });
}

/**
 * Who won, who would have without an election, and how clear it was.
 * @param {import("./answers").Election} election
 */
function outcome(election) {
  const { ballot, margin } = election;
  const winner = rowOf(election, election.winner);
  const likely = election.most_likely === null ? null : rowOf(election, election.most_likely);
  /** @type {[string, ...(Node | string)[]][]} */
  const facts = [];
  if (ballot.source !== null) facts.push(["Source", longer(ballot.source)]);
  for (const reference of ballot.references.slice(0, 5)) facts.push(["Reference", longer(reference)]);
  facts.push(["Elected", make("strong", { id: "winner" }, brief(winner))]);
  if (likely === winner) facts.push(["Most likely", "the same"]);
  else if (likely) {
    facts.push(["Most likely", brief(likely), ` (P = ${probability(likely)}, rank ${likely.rank} by score)`]);
  }
  facts.push(["Score", fixed(election.score, 6)]);
  const clear = make("span", { id: "margin" }, margin === null ? "no rival" : `${small(margin)} above the next`);
  const tie = "near-tie: rounding could have decided";
  if (election.near_tie) clear.append(" ", make("span", { class: "badge tie" }, tie));
  facts.push(["Margin", clear]);
  const decided = "nobody got a vote; the tie order (log-probability, then first) decided";
  if (election.no_support) facts.push(["Note", decided]);
  facts.push(["Signature", make("code", {}, election.signature)]);
  const listed = facts.flatMap(([name, ...content]) => [make("dt", {}, name), make("dd", {}, ...content)]);
  return make("dl", { class: "facts numbers" }, ...listed);
}

async function start() {
  at("status").textContent = "Loading…";
  try {
    about = await ask("api/election");
    startPicker(about, go, () => position, complain);
    addEventListener("hashchange", show);
    await show();
  } catch (error) {
    complain(why(error));
  }
}

start();
