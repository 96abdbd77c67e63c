// Model outputs as text and nothing else.

import { append } from "/static/unseen.js";

/**
 * Show a text in an element.
 * @param {HTMLElement} container
 * @param {string} text
 * @param {string} what it is, for an empty one
 * @param {import("./differences.js").Piece[]} pieces of the text, where some are to be marked
 */
export function showText(container, text, what = "output", pieces = [{ text, own: false }]) {
  container.replaceChildren();
  if (text.trim() === "") container.append(nothing(text, what));
  else for (const run of joined(pieces)) append(run.own ? mark(container) : container, run.text);
  container.scrollTop = 0;
}

/**
 * Neighbours of one kind as one piece; white space between two marked words is marked with them.
 * @param {import("./differences.js").Piece[]} pieces
 */
function joined(pieces) {
  /** @type {import("./differences.js").Piece[]} */
  const runs = [];
  pieces.forEach(({ text, own }, i) => {
    const inside = own || (text.trim() === "" && !!pieces[i - 1]?.own && !!pieces[i + 1]?.own);
    const last = runs.at(-1);
    if (last && last.own === inside) last.text += text;
    else runs.push({ text, own: inside });
  });
  return runs;
}

/** @param {HTMLElement} container */
function mark(container) {
  return container.appendChild(document.createElement("mark"));
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
