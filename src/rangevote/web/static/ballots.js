// Which ballot is looked at: one after the other, by number or id, or from the list.

import { ask, exported } from "./ask.js";
import { grouped } from "./numbers.js";
import { button, brief, make, why } from "./text.js";
import { append } from "./unseen.js";

/** @param {string} id @returns {any} */
export const at = (id) => document.getElementById(id);

/**
 * Make the picker work.
 * @param {import("./answers").About} about the answer api/election
 * @param {(position: {number?: number, list?: number}) => void} go
 * @param {() => {number: number}} now
 * @param {(message: string) => void} complain
 */
export function startPicker(about, go, now, complain) {
  at("picker").hidden = about.kept < 2 && about.lists.length < 2;
  at("previous").addEventListener("click", () => go({ number: now().number - 1 }));
  at("next").addEventListener("click", () => go({ number: now().number + 1 }));
  at("find").addEventListener("submit", (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    find(at("wanted").value.trim(), about).then((number) => go({ number }), (error) => complain(error.message));
  });
  about.lists.forEach((list, i) => at("list").append(make("option", { value: i }, list.name)));
  at("lists").hidden = about.lists.length < 2;
  at("list").addEventListener("change", () => go({ list: Number(at("list").value) }));
  at("ballots").addEventListener("toggle", () => {
    if (at("ballots").open) listPage(Math.floor(now().number / about.page), go, complain);
  });
}

/**
 * A ballot by its id, or by its number from 1.
 * @param {string} wanted
 * @param {import("./answers").About} about
 * @returns {Promise<number>}
 */
async function find(wanted, about) {
  const answer = await ask(`api/find?id=${encodeURIComponent(wanted)}`).catch((error) => {
    if (exported) return { number: null }; // a file keeps only the ids that are there
    throw error;
  });
  if (answer.number !== null) return answer.number;
  const number = Number(wanted);
  if (Number.isInteger(number) && number >= 1 && number <= about.kept) return number - 1;
  const allowed = `give an id, or a number from 1 to ${grouped(about.kept)}`;
  throw new Error(`There is no ballot ${wanted || "without a name"}: ${allowed}.`);
}

/** @param {number} page @param {(position: {number: number}) => void} go @param {(message: string) => void} complain */
async function listPage(page, go, complain) {
  try {
    /** @type {import("./answers").BallotPage} */
    const listed = await ask(`api/ballots?page=${page}`);
    const items = listed.ballots.map((ballot) => {
      const label = button("", () => go({ number: ballot.number }));
      label.classList.add("plain");
      append(label, ballot.id === null ? `${ballot.number + 1}. ` : `${ballot.number + 1}. ${ballot.id}: `);
      label.append(brief({ text: ballot.title }));
      return make("li", {}, label);
    });
    const pager = make("p", {});
    if (page > 0) pager.append(button("Page before", () => listPage(page - 1, go, complain)), " ");
    pager.append(`page ${page + 1} of ${listed.pages} `);
    if (page + 1 < listed.pages) pager.append(button("Page after", () => listPage(page + 1, go, complain)));
    at("ballot-page").replaceChildren(make("ul", { class: "plain" }, ...items), pager);
  } catch (error) {
    complain(why(error));
  }
}

/**
 * Show where the page is.
 * @param {import("./answers").About} about
 * @param {{number: number, list: number}} position
 * @param {string | number | null} id
 */
export function showPosition(about, position, id) {
  at("previous").disabled = position.number <= 0;
  at("next").disabled = position.number >= about.kept - 1;
  at("list").value = String(position.list);
  const left = about.kept < about.ballots ? ` (the first of ${grouped(about.ballots)})` : "";
  at("position").textContent = `Ballot ${grouped(position.number + 1)} of ${grouped(about.kept)}${left}`;
  if (id !== null) append(at("position"), `, id ${id}`);
}
