// The election page: which ballot under which settings, its outcome first, then what is slower to count.

import { ask } from "./ask.js";
import { showCandidates } from "./candidates.js";
import { showFirm } from "./firm.js";
import { showGrades } from "./grades.js";
import { setMembers, showMembers } from "./members.js";
import { showParts } from "./parts.js";
import { Rail } from "./rail.js";
import { at, faint, problem, why } from "./text.js";
import { duel, fullShade, outcome, rowOf, shadeWinner } from "./top.js";
import { append } from "./unseen.js";
import { SETTINGS, showWhatIf } from "./whatif.js";
import { NgramVoters } from "./words.js";

/** What is looked at; kept in the address, so that a reload and a link show the same. */
const position = { number: 0, list: 0 };
let overrides = new URLSearchParams();
/** The number of the latest election that was asked for: answers about an older one are dropped. */
let latest = 0;
/** @type {import("./answers").About} */
let about;
/** @type {Rail} */
let rail;

/** An election that is on the page. */
class Shown {
  /** @param {string} path of its ballot, as "api/ballots/0" @param {string} query @param {import("./answers").Election} election @param {number} mine */
  constructor(path, query, election, mine) {
    this.path = path;
    this.query = query;
    this.election = election;
    this.mine = mine;
    this.ngramVoters = new NgramVoters(election);
    /** Shows a pair of texts, once the map is there. */
    this.pair = (/** @type {number} */ voter, /** @type {number} */ candidate) => {};
    this.shade = 0;
  }

  /** Whether the reader still looks at it. */
  current() {
    return this.mine === latest;
  }

  /** @param {number} index @returns {Promise<import("./answers").Parts>} */
  parts(index) {
    return ask(`${this.path}/candidates/${index}?${this.query}`);
  }

  /** @param {string} role @param {number} index @returns {Promise<import("./answers").Text>} */
  whole(role, index) {
    return ask(`${this.path}/text?${this.query}&role=${role}&index=${index}`);
  }
}

/** @param {string} message */
function showProblem(message) {
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
  const named = new URLSearchParams(overrides);
  if (number !== position.number) named.delete("without"); // another ballot has other voters
  location.hash = `ballot=${number + 1}&list=${(wanted.list ?? position.list) + 1}${String(named) && `&${named}`}`;
}

/**
 * Change settings; the address carries them.
 * @param {Record<string, string>} changes
 */
function override(changes) {
  for (const [name, value] of Object.entries(changes)) {
    if (value) overrides.set(name, value);
    else overrides.delete(name);
  }
  go({});
}

/** The position and the settings that the address names. */
function fromAddress() {
  const named = new URLSearchParams(location.hash.slice(1));
  /** @param {string} name @param {number} many */
  const index = (name, many) => {
    const number = Number(named.get(name) ?? 1);
    return Number.isInteger(number) && number >= 1 && number <= many ? number - 1 : 0;
  };
  position.number = index("ballot", about.kept);
  position.list = index("list", about.lists.length);
  overrides = new URLSearchParams(about.measures.length ? [...named].filter(([name, value]) => SETTINGS.includes(name) && value) : []);
}

async function show() {
  const mine = ++latest;
  delete document.documentElement.dataset.complete;
  fromAddress();
  showProblem("");
  rail.show(position, null);
  at("status").textContent = "Counting votes…";
  const path = `api/ballots/${position.number}`;
  const query = `list=${position.list}${String(overrides) && `&${overrides}`}`;
  try {
    /** @type {import("./answers").Election} */
    const election = await ask(`${path}?${query}`);
    if (mine !== latest) return;
    rail.show(position, election.ballot.id);
    const shown = new Shown(path, query, election, mine);
    showFirst(shown);
    await showRest(shown);
  } catch (error) {
    if (mine !== latest) return;
    at("election").hidden = true;
    showProblem(why(error));
  }
}

/**
 * The outcome and the candidates.
 * @param {Shown} shown
 */
function showFirst(shown) {
  const { election } = shown;
  at("election").hidden = false;
  at("status").textContent = "";
  const name = election.ballot.id ?? (about.kept > 1 ? `Ballot ${position.number + 1}` : about.lists[position.list].name);
  document.title = `${name} · ${rowOf(election, election.winner).text.slice(0, 60)} · rangevote`;
  at("outcome").replaceChildren(outcome(election));
  const beside = duel(election);
  at("beside").hidden = beside === null;
  at("duel").replaceChildren(...(beside ? [beside] : []));
  showWhatIf(about, election, overrides, override);
  showCandidates(at("candidates"), election, (container, index) => showDetails(shown, container, index));
  at("signature").textContent = election.signature;
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
}

/**
 * What takes longer, each part as its answer comes.
 * @param {Shown} shown
 */
async function showRest(shown) {
  const { path, query, election } = shown;
  for (const name of ["grades", "firm"]) at(name).replaceChildren(faint("Counting…"));
  await fill("winner-votes", shown, shown.parts(election.winner), (parts) => {
    shown.shade = fullShade(election, parts);
    shadeWinner(at("winner"), at("winner-votes"), election, parts, shown.ngramVoters);
  });
  await fill("grades", shown, ask(`${path}/grades?${query}`), (graded) => {
    shown.pair = showGrades(at("grades"), graded, election, (role, index) => shown.whole(role, index));
  });
  const names = about.lists.map((one) => one.name);
  const asked = names.map((_, i) => ask(`${path}/winners?${query.replace(/^list=\d+/, `list=${i}`)}`).catch((error) => error));
  const without = about.measures.length && !overrides.get("without") ? (/** @type {number} */ voter) => override({ without: String(voter) }) : null;
  await fill("firm", shown, Promise.all(asked), (answer) => showFirm(at("firm"), election, answer, names, position.list, without));
  await showPanel(shown);
  if (shown.current()) document.documentElement.dataset.complete = String(Math.round(performance.now()));
}

/**
 * The members of the panel, once for each list: they are counted over all its ballots.
 * @param {Shown} shown
 */
async function showPanel(shown) {
  const { list } = position;
  at("panel").hidden = !about.members.length;
  if (!about.members.length || at("members").dataset.list === String(list)) return;
  at("members").replaceChildren(faint("Counting…"));
  await fill("members", shown, ask(`api/members?list=${list}`), (panel) => {
    showMembers(at("members"), panel);
    at("members").dataset.list = String(list);
  });
}

/**
 * Fill one part of the page when its answer is there, or say why it is not.
 * @param {string} name
 * @param {Shown} shown
 * @param {Promise<any>} asked
 * @param {(answer: any) => void} use
 */
async function fill(name, shown, asked, use) {
  try {
    const answer = await asked;
    if (shown.current()) use(answer);
  } catch (error) {
    if (shown.current()) at(name).append(problem(error));
  }
}

/**
 * Take one candidate's score apart.
 * @param {Shown} shown
 * @param {HTMLElement} container
 * @param {number} index
 */
async function showDetails(shown, container, index) {
  const row = rowOf(shown.election, index);
  const [parts, text] = await Promise.all([shown.parts(index), row.more ? shown.whole("candidates", index) : row]);
  showParts(container, parts, shown.ngramVoters, shown.shade, text, (voter) => shown.pair(voter, index));
}

async function start() {
  at("status").textContent = "Loading…";
  try {
    about = await ask("api/election");
    at("version").textContent = `rangevote ${about.version}`;
    setMembers(about.members);
    rail = new Rail(about, go, showProblem);
    addEventListener("hashchange", show);
    rail.start();
    await show();
    await rail.load(); // the first ballot is not to wait for the others
  } catch (error) {
    showProblem(why(error));
  }
}

start();
