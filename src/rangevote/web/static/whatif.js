// What if: measure, temperature, own likelihood and who votes can be changed; the election is counted again at once.

import { at, button, make, output } from "./text.js";
import { rowOf } from "./top.js";

/** Settings that the address and the server's queries have, by these names. */
export const TURNED = ["similarity", "temperature", "likelihood", "weights", "voters", "without"];

/** Milliseconds that a slider rests before the election is counted again. */
const REST = 60;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let waiting;

/**
 * @param {import("./answers").About} about
 * @param {import("./answers").Election} election
 * @param {URLSearchParams} turned what is turned now
 * @param {(changes: Record<string, string>) => void} turn an empty value is as in the page's own election
 */
export function showWhatIf(about, election, turned, turn) {
  const container = at("what-if-controls");
  const { settings, voters } = election;
  const busy = document.activeElement instanceof HTMLElement ? document.activeElement.id : "";
  const fields = [
    choice("similarity", "Measure", turned, turn, [["", `${about.measure} (as given)`], ...about.measures.map((name) => /** @type {[string, string]} */ ([name, name]))]),
    choice("weights", "Voters count", turned, turn, [["", "as given"], ["probability", "by probability"], ["count", "all the same"]]),
  ];
  if (settings.weights.includes("probability")) fields.push(slider("temperature", "Temperature", settings.temperature, 0.25, 8, 0.25, turn));
  if (settings.known) fields.push(slider("likelihood", "Own likelihood", settings.likelihood, 0, 2, 0.1, turn));
  if (!voters.same || turned.get("voters")) fields.push(choice("voters", "Who votes", turned, turn, [["", "the voters given"], ["candidates", "the candidates"]]));
  if (turned.get("without")) fields.push(button("Let everybody vote", () => turn({ without: "" })));
  const touched = TURNED.some((name) => turned.get(name));
  if (touched) {
    const reset = button("Reset", () => turn(Object.fromEntries(TURNED.map((name) => [name, ""]))));
    reset.id = "as-given";
    fields.push(reset);
  }
  container.replaceChildren(...fields);
  at("what-if").hidden = !about.measures.length;
  if (touched) at("what-if").open = true;
  at("what-changed").replaceChildren(...changes(election));
  at(busy)?.focus(); // the field that was changed keeps the focus
}

/**
 * What the turned settings change.
 * @param {import("./answers").Election} election
 */
function changes(election) {
  const { before, winner } = election;
  if (!before) return [];
  const mark = make("span", { class: before.winner === winner ? "badge" : "badge up" }, before.winner === winner ? "same winner" : "another winner");
  if (before.winner === winner) return [mark, " With these settings the same output is elected."];
  const was = election.candidates.rows.find((row) => row.index === before.winner);
  const text = was ? make("q", {}, output(was.text.slice(0, 160))) : `candidate ${before.winner}`;
  const moved = was ? ` It now has rank ${was.rank}; the new winner had rank ${before.ranks[rowOf(election, winner).index] ?? "–"}.` : "";
  return [mark, " With the original settings the winner was ", text, ".", moved];
}

/**
 * @param {string} name
 * @param {string} label
 * @param {URLSearchParams} turned
 * @param {(changes: Record<string, string>) => void} turn
 * @param {[string, string][]} options
 */
function choice(name, label, turned, turn, options) {
  const field = make("select", { id: `turn-${name}` }, ...options.map(([value, text]) => make("option", { value }, text)));
  field.value = turned.get(name) ?? "";
  field.addEventListener("change", () => turn({ [name]: field.value }));
  return make("label", {}, make("span", {}, label), field);
}

/**
 * @param {string} name
 * @param {string} label
 * @param {number} now
 * @param {number} least
 * @param {number} most
 * @param {number} step
 * @param {(changes: Record<string, string>) => void} turn
 */
function slider(name, label, now, least, most, step, turn) {
  const field = make("input", { type: "range", id: `turn-${name}`, min: least, max: most, step });
  field.value = String(now);
  const told = make("output", { for: `turn-${name}`, class: "numbers" }, String(now));
  field.addEventListener("input", () => {
    told.textContent = field.value;
    clearTimeout(waiting);
    waiting = setTimeout(() => turn({ [name]: field.value }), REST);
  });
  return make("label", {}, make("span", {}, label, " ", told), field);
}
