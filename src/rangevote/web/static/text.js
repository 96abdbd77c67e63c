// Texts of models as a page may show them: never markup, nothing hidden, directions kept apart.

import { append } from "./unseen.js";

/** Characters of a text that stand in a table or a label. */
const SHORT = 240;
/** Characters before a passage that is shown. */
const LEAD = 60;

/**
 * The element of the page with an id.
 * @param {string} id
 * @returns {any}
 */
export const at = (id) => document.getElementById(id);

/**
 * An element with attributes and children; strings become text.
 * @param {string} tag
 * @param {Record<string, string | number | boolean | null>} [attributes] null and false are left out
 * @param {...(Node | string)} children
 * @returns {any}
 */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== false) element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children);
  return element;
}

/**
 * A button.
 * @param {string} label
 * @param {() => void} act
 */
export function button(label, act) {
  const element = make("button", { type: "button" }, label);
  element.addEventListener("click", act);
  return element;
}

/**
 * A paragraph in a faint colour.
 * @param {string} text
 */
export function faint(text) {
  return make("p", { class: "faint" }, text);
}

/**
 * The message of an error.
 * @param {unknown} error
 */
export function why(error) {
  return error instanceof Error ? error.message : String(error);
}

/**
 * What went wrong.
 * @param {unknown} error
 */
export function problem(error) {
  const element = make("p", { class: "problem" });
  append(element, why(error));
  return element;
}

/**
 * A table of rows under a caption and the titles of its columns.
 * @param {Record<string, string>} attributes
 * @param {string} caption
 * @param {string[]} titles
 * @param {Node[]} rows
 */
export function tableOf(attributes, caption, titles, rows) {
  const head = make("tr", {}, ...titles.map((title) => make("th", { scope: "col" }, title)));
  return make("table", attributes, make("caption", {}, caption), make("thead", {}, head), make("tbody", {}, ...rows));
}

/**
 * A box that scrolls, and can be scrolled by keys.
 * @param {string} label
 * @param {string} kind further classes
 * @param {...Node} children
 */
export function scrolling(label, kind, ...children) {
  const name = `scroll ${kind}`.trim();
  return make("div", { class: name, tabindex: 0, role: "region", "aria-label": label }, ...children);
}

/**
 * A model's output, isolated; `ranges` of it are marked, code is in monospace.
 * @param {string} text
 * @param {[number, number][]} [ranges] in order, without overlap
 * @param {[number, number][]} [code]
 */
export function output(text, ranges = [], code = codeRanges(text)) {
  if (!text.trim()) return make("span", { class: "faint" }, text ? "(only white space)" : "(empty output)");
  const shown = make("bdi", { class: "output", dir: "auto" });
  const cuts = [0, ...ranges.flat(), ...code.flat(), text.length].sort((one, other) => one - other);
  /** @param {[number, number][]} some @param {number} at */
  const inside = (some, at) => some.some(([begin, end]) => at >= begin && at < end);
  for (let i = 1; i < cuts.length; i++) {
    const [begin, end] = [cuts[i - 1], cuts[i]];
    if (begin === end) continue;
    const marked = inside(ranges, begin);
    const mono = inside(code, begin);
    const part = marked || mono ? make(marked ? "mark" : "span", { class: mono ? "code" : null }) : shown;
    append(part, text.slice(begin, end));
    if (part !== shown) shown.append(part);
  }
  return shown;
}

/**
 * Where code stands: between fences, or everywhere if most lines look like it.
 * @param {string} text
 * @returns {[number, number][]}
 */
export function codeRanges(text) {
  const fenced = Array.from(text.matchAll(/^```.*$[^]*?^```[ \t]*$|^```.*$[^]*$/gm), ({ 0: block, index = 0 }) => {
    return /** @type {[number, number]} */ ([index, index + block.length]);
  });
  if (fenced.length) return fenced;
  const lines = text.split("\n").filter((line) => line.trim());
  const like = lines.filter((line) => /^(?: {2,}|\t)\S|[{};]\s*$|^(?:def|class|import|from|return|function|const|let|for|if|while)\b.*[:;({]\s*$/.test(line));
  return lines.length > 2 && 2 * like.length > lines.length ? [[0, text.length]] : [];
}

/**
 * The beginning of an output, for tables.
 * @param {{text: string, more?: number}} row
 */
export function brief(row) {
  return excerpt(row, [], 0);
}

/**
 * A part of an output from character `from` on, a little before it, with the marks that lie in it.
 * @param {{text: string, more?: number}} row
 * @param {[number, number][]} ranges
 * @param {number} from
 */
export function excerpt(row, ranges, from) {
  const { text } = row;
  if (text.length <= SHORT && !row.more) return output(text, ranges);
  let begin = text.length - from < SHORT / 2 ? Math.max(0, text.length - SHORT) : Math.max(0, from - LEAD);
  if (begin > 0) begin = Math.max(text.lastIndexOf(" ", begin), text.lastIndexOf("\n", begin)) + 1;
  const part = shortened(text.slice(begin));
  const inside = ranges.filter(([one, end]) => end > begin && one < begin + part.length);
  const shown = output(part, inside.map(([one, end]) => [Math.max(0, one - begin), Math.min(part.length, end - begin)]));
  if (begin > 0) shown.prepend(make("span", { class: "faint" }, "… "));
  const left = text.length - begin - part.length + (row.more || 0);
  if (left > 0) shown.append(make("span", { class: "faint" }, ` … (${left.toLocaleString("en")} more characters)`));
  return shown;
}

/**
 * A text that opens in full where it is long.
 * @param {string} text
 */
export function longer(text) {
  if (text.length <= SHORT) return output(text);
  const box = scrolling("The whole text", "text");
  const details = make("details", {}, make("summary", {}, brief({ text })), box);
  details.addEventListener("toggle", () => details.open && box.replaceChildren(output(text)));
  return details;
}

/**
 * At most `SHORT` characters, none cut in half.
 * @param {string} text
 */
function shortened(text) {
  return text.length > SHORT ? text.slice(0, SHORT).replace(/[\ud800-\udbff]$/, "") : text;
}
