// Texts of models as a page may show them: never markup, nothing hidden, directions kept apart.

import { append } from "./unseen.js";

/** Characters of a text that stand in a table or a label. */
const SHORT = 240;

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
 * A model's output, isolated; `ranges` of it are marked.
 * @param {string} text
 * @param {[number, number][]} [ranges] in order, without overlap
 */
export function output(text, ranges = []) {
  if (!text.trim()) return make("span", { class: "faint" }, text ? "(only white space)" : "(empty output)");
  const shown = make("bdi", { class: "output", dir: "auto" });
  let done = 0;
  for (const [begin, end] of ranges) {
    append(shown, text.slice(done, begin));
    const mark = make("mark");
    append(mark, text.slice(begin, end));
    shown.append(mark);
    done = end;
  }
  append(shown, text.slice(done));
  return shown;
}

/**
 * The beginning of an output, for tables.
 * @param {{text: string, more?: number}} row
 */
export function brief(row) {
  const shown = output(shortened(row.text));
  if (row.more || row.text.length > SHORT) {
    const left = row.text.length - shortened(row.text).length + (row.more || 0);
    shown.append(make("span", { class: "faint" }, ` … (${left.toLocaleString("en")} more characters)`));
  }
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
