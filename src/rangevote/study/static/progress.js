// How far everybody is, for who runs the study; asked for again every few seconds.

import { Refused, Server } from "/static/server.js";
import { at, make } from "/static/text.js";

/** @typedef {import("./session").StudyProgress} Progress */
/** @typedef {Progress["people"][number]} Person */

const PAUSE = 3000;
/** Who answered or opened the page within so many seconds is at work. */
const RECENT = 180;

/** @param {Progress} progress */
function show({ title, time, people }) {
  document.title = `Progress: ${title}`;
  at("title").textContent = title;
  const judged = people.reduce((sum, one) => sum + one.judged, 0);
  const assigned = people.reduce((sum, one) => sum + one.assigned, 0);
  const finished = people.filter((one) => one.finished).length;
  const share = assigned ? Math.floor((100 * judged) / assigned) : 100;
  const done = people.length === 1 ? (finished ? "finished" : "not finished") : `${finished} of ${people.length} annotators have finished`;
  at("summary").textContent = `${judged} of ${assigned} answers are there (${share} %), ${done}.`;
  at("bar").max = assigned || 1;
  at("bar").value = judged;
  at("people").replaceChildren(...people.map((person) => row(person, Date.parse(time))));
  at("time").textContent = `Updated at ${new Date(time).toLocaleTimeString()}, every ${PAUSE / 1000} seconds.`;
  at("study").hidden = false;
  at("banner").hidden = true;
}

/** @param {Person} person @param {number} now */
function row(person, now) {
  const left = person.assigned - person.judged;
  const [kind, state] = stateOf(person, now);
  const bar = make("progress", { max: person.assigned || 1, value: person.judged, "aria-hidden": "true" }); // the numbers say it
  const rest = [
    person.last === null ? "" : `${span((now - Date.parse(person.last)) / 1000)} ago`,
    person.seconds === null || !left ? "" : span(left * person.seconds),
    person.seconds === null ? "" : person.seconds.toFixed(1),
    String(person.cannot),
    String(person.comments),
  ];
  return make(
    "tr",
    {},
    make("th", { scope: "row" }, person.name),
    make("td", { class: kind }, state),
    make("td", {}, `${person.judged} of ${person.assigned}`, bar),
    ...rest.map((text) => make("td", {}, text)),
  );
}

/** @param {Person} person @param {number} now @returns {[string, string]} */
function stateOf({ finished, opened, last, judged, assigned }, now) {
  if (finished) return ["finished", "finished"];
  if (opened === null) return ["faint", "link not opened yet"];
  const seen = Math.max(Date.parse(opened), last === null ? 0 : Date.parse(last));
  if (judged === assigned) return ["working", "all judged, not finished"];
  return now - seen < 1000 * RECENT ? ["working", "at work"] : ["faint", "away"];
}

/** @param {number} seconds */
function span(seconds) {
  if (seconds < 60) return `${Math.max(0, Math.round(seconds))} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  return minutes < 48 * 60 ? `${Math.floor(minutes / 60)} h ${minutes % 60} min` : `${Math.round(minutes / 1440)} days`;
}

/** @param {string} text */
function showProblem(text) {
  at("banner").textContent = text;
  at("banner").hidden = false;
}

async function follow() {
  const server = new Server(location.hash.slice(1));
  for (;;) {
    try {
      if (!document.hidden) show(await server.ask("/api/progress"));
    } catch (error) {
      if (error instanceof Refused) {
        showProblem("This link is not known. Open the one that `rangevote study serve` prints, including everything after the # sign.");
        return;
      }
      showProblem("The study is not being served, or cannot be reached. This page keeps trying.");
    }
    await new Promise((resolve) => setTimeout(resolve, PAUSE));
  }
}

window.addEventListener("hashchange", () => location.reload());
follow();
