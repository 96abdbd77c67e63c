// The members of a panel: each has a colour, and its name always stands beside it; what they did over the file.

import { counted, grouped, percent } from "./numbers.js";
import { faint, make, scrolling, tableOf } from "./text.js";
import { append } from "./unseen.js";

/** Colours, and ways to fill a sign with each: further members begin again. */
const COLOURS = 8;
const FILLS = 3;
/** Members of a group of candidates that are named in its line; all are where it is opened. */
const NAMED = 4;

/** @type {Map<string, number>} */
const places = new Map();

/**
 * The members of all lists, so that each keeps its colour from ballot to ballot.
 * @param {string[]} names
 */
export function setMembers(names) {
  names.forEach((name, place) => places.set(name, place));
}

/**
 * The number of a member's colour.
 * @param {string} name
 */
export function colourNumber(name) {
  return (places.get(name) ?? 0) % COLOURS;
}

/**
 * The classes of a member's colour.
 * @param {string} name
 */
export function memberColour(name) {
  return `member-${colourNumber(name)} fill-${Math.floor((places.get(name) ?? 0) / COLOURS) % FILLS}`;
}

/**
 * A member: its sign and its name.
 * @param {string} name
 * @param {string} [more] said behind the name
 */
export function memberBadge(name, more = "") {
  const label = make("bdi", { class: "member-name" });
  append(label, name);
  return make("span", { class: "member" }, make("span", { class: `sign ${memberColour(name)}`, "aria-hidden": "true" }), label, make("span", { class: "nowrap" }, more));
}

/**
 * The members that wrote some candidates, each once.
 * @param {import("./answers").Candidate[]} rows
 * @param {boolean} [all] and not only the first
 */
export function writers(rows, all = false) {
  const names = [...new Set(rows.flatMap((row) => row.member ?? []))];
  const shown = names.slice(0, all ? names.length : NAMED).map((name) => memberBadge(name));
  if (shown.length < names.length) shown.push(make("span", { class: "faint" }, `and ${grouped(names.length - shown.length)} more`));
  return shown;
}

/**
 * Colours and names of the members of one ballot, with their shares of its vote.
 * @param {import("./answers").Election} election
 */
export function memberLegend(election) {
  const names = new Set(election.candidates.rows.flatMap((row) => row.member ?? []));
  for (const name of Object.keys(election.shares ?? {})) names.add(name);
  if (!names.size) return [];
  const items = [...names].sort().map((name) => {
    const share = election.shares?.[name];
    return make("li", { class: "chip" }, memberBadge(name, share === undefined ? " does not vote" : ` ${percent(share)}`));
  });
  const label = "Members of the panel, with their shares of the vote";
  return [make("p", { class: "faint note" }, `${label}:`), make("ul", { id: "member-legend", class: "chips", "aria-label": label }, ...items)];
}

/**
 * What each member did over the file.
 * @param {HTMLElement} container
 * @param {import("./answers").PanelSummary} panel
 */
export function showMembers(container, panel) {
  const { answers } = panel;
  const titles = ["Member", "Outputs", "Wins", "Agreement", "Share", ...(answers ? ["Share by agreement", "Twins"] : ["Copies"])];
  const rows = panel.members.map((member) => {
    const cells = [grouped(member.outputs), grouped(member.wins), agreement(member, answers), part(member.share)];
    if (answers) cells.push(part(member.agreement_share));
    const twins = make("td", {}, ...(member.twins.length ? member.twins.map((name) => memberBadge(name)) : ["none"]));
    return make("tr", {}, make("th", { scope: "row" }, memberBadge(member.name)), ...cells.map((text) => make("td", {}, text)), twins);
  });
  const over = panel.ballots < panel.total ? `the first ${grouped(panel.ballots)} of ${counted(panel.total, "ballot")}` : counted(panel.ballots, "ballot");
  const caption = `Over ${over}, of which ${grouped(panel.elected)} have a winner`;
  const table = tableOf({ class: "numbers", id: "member-table" }, caption, titles, rows);
  container.replaceChildren(scrolling("Members of the panel", "", table), faint(explained(panel)));
}

/** @param {import("./answers").PanelSummary["members"][number]} member @param {boolean} answers */
function agreement({ agreement: share, interval }, answers) {
  if (share === null) return "–";
  return answers ? `${part(share)}${interval ? ` (${part(interval[0])} to ${part(interval[1])})` : ""}` : share.toFixed(3);
}

/** @param {number | null} share */
function part(share) {
  return share === null ? "–" : `${(100 * share).toFixed(1)} %`;
}

/** @param {import("./answers").PanelSummary} panel */
function explained({ answers, measure }) {
  const wins = "Wins: the similarity cannot tell its output from the elected one, so that several members may win. ";
  if (!answers) return `${wins}Agreement: mean similarity by ${measure} to the others' outputs; of texts it does not say who is good. Copies: wrote the same text in nine of ten ballots or more.`;
  return (
    `${wins}Agreement: how often its answer is that of the election without it and its twins, with a 95 % interval over the ballots that it answers; ` +
    "it estimates the member's accuracy without labels. Share by agreement: what --shares agreement gives it. Twins make the same mistakes and divide one share."
  );
}
