// Model outputs as text and nothing else.

import { append } from "/static/unseen.js";

/**
 * Show a text in an element.
 * @param {HTMLElement} container
 * @param {string} text
 * @param {string} what it is, for an empty one
 */
export function showText(container, text, what = "output") {
  container.replaceChildren();
  if (text.trim() === "") container.append(nothing(text, what));
  else append(container, text);
  container.scrollTop = 0;
}

/** @param {string} text @param {string} what */
function nothing(text, what) {
  return element("span", "empty", text === "" ? `(empty ${what})` : "(only white space)");
}

/**
 * @param {string} name
 * @param {string} kind
 * @param {string} text
 */
export function element(name, kind, text) {
  const made = document.createElement(name);
  made.className = kind;
  made.textContent = text;
  return made;
}
