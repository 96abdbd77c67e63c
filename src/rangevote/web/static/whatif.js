// What if: the reader changes measure, temperature, own likelihood or who votes, and the election is counted again.

import { at, button, make, output } from "./text.js";
import { rowOf } from "./top.js";

/** Settings that the address and the server's queries have, by these names. */
export const SETTINGS = ["similarity", "temperature", "likelihood", "weights", "voters", "without"];

/** Milliseconds that a slider rests before the election is counted again. */
const REST = 60;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let waiting;

/**
 * @param {import("./answers").About} about
 * @param {import("./answers").Election} election
 * @param {URLSearchParams} overrides the settings that the reader has changed
 * @param {(changes: Record<string, string>) => void} override changes some; an empty value takes a change back
 */
export function showWhatIf(about, election, overrides, override) {
  const container = at("what-if-controls");
  const { settings, voters } = election;
  const busy = document.activeElement instanceof HTMLElement ? document.activeElement.id : "";
  const fields = [
    choice("similarity", "Similarity", overrides, override, [["", `${about.measure} (as given)`], ...about.measures.map((name) => /** @type {[string, string]} */ ([name, name]))]),
    choice("weights", "Voters count", overrides, override, [["", "as given"], ["probability", "by probability"], ["count", "all the same"]]),
  ];
  if (settings.weights.includes("probability")) fields.push(slider("temperature", "Temperature", settings.temperature, 0.25, 8, 0.25, override));
  if (settings.has_logprobs) fields.push(slider("likelihood", "Own likelihood", settings.likelihood, 0, 2, 0.1, override));
  if (!voters.same || overrides.get("voters")) fields.push(choice("voters", "Who votes", overrides, override, [["", "the voters given"], ["candidates", "the candidates"]]));
  if (overrides.get("without")) fields.push(button("Let everybody vote", () => override({ without: "" })));
  const touched = SETTINGS.some((name) => overrides.get(name));
  if (touched) {
    const reset = button("Reset", () => override(Object.fromEntries(SETTINGS.map((name) => [name, ""]))));
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
 * What the changed settings do to the outcome.
 * @param {import("./answers").Election} election
 */
function changes(election) {
  const { original_winner: original, winner } = election;
  if (original === null) return [];
  const mark = make("span", { class: original === winner ? "badge" : "badge up" }, original === winner ? "same winner" : "another winner");
  if (original === winner) return [mark, " With these settings the same output is elected."];
  const was = election.candidates.rows.find((row) => row.index === original);
  const text = was ? make("q", {}, output(was.text.slice(0, 160))) : `candidate ${original}`;
  const moved = was ? ` It now has rank ${was.rank}; the new winner had rank ${rowOf(election, winner).original_rank ?? "–"}.` : "";
  return [mark, " With the original settings the winner was ", text, ".", moved];
}

/**
 * @param {string} name
 * @param {string} label
 * @param {URLSearchParams} overrides
 * @param {(changes: Record<string, string>) => void} override
 * @param {[string, string][]} options
 */
function choice(name, label, overrides, override, options) {
  const field = make("select", { id: `what-if-${name}` }, ...options.map(([value, text]) => make("option", { value }, text)));
  field.value = overrides.get(name) ?? "";
  field.addEventListener("change", () => override({ [name]: field.value }));
  return make("label", {}, make("span", {}, label), field);
}

/**
 * @param {string} name
 * @param {string} label
 * @param {number} now
 * @param {number} least
 * @param {number} most
 * @param {number} step
 * @param {(changes: Record<string, string>) => void} override
 */
function slider(name, label, now, least, most, step, override) {
  const field = make("input", { type: "range", id: `what-if-${name}`, min: least, max: most, step });
  field.value = String(now);
  const shown = make("output", { for: `what-if-${name}`, class: "numbers" }, String(now));
  field.addEventListener("input", () => {
    shown.textContent = field.value;
    clearTimeout(waiting);
    waiting = setTimeout(() => override({ [name]: field.value }), REST);
  });
  return make("label", {}, make("span", {}, label, " ", shown), field);
}
