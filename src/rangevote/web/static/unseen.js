// Characters that change what is seen without being seen are spelled out and not obeyed, on every page.

/** Controls but tab and line feed, marks that turn the direction of writing, zero-width ones. */
const UNSEEN = new RegExp(
  "[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u180e\\u200b\\u200e\\u200f\\u2028-\\u202e" +
    "\\u2060-\\u206f\\ufeff\\ufff9-\\ufffb\\u{e0000}-\\u{e007f}]",
  "gu",
);

/**
 * Append text, with unseen characters spelled out.
 * @param {Element} parent
 * @param {string} text
 */
export function append(parent, text) {
  let done = 0;
  for (const { 0: character, index: at = 0 } of text.matchAll(UNSEEN)) {
    if (at > done) parent.append(text.slice(done, at));
    parent.append(spelled(/** @type {number} */ (character.codePointAt(0))));
    done = at + character.length;
  }
  if (done < text.length) parent.append(text.slice(done));
}

/** @param {number} code */
function spelled(code) {
  const element = document.createElement("bdi");
  element.className = "unseen";
  element.title = "a character that is not seen";
  element.textContent = `U+${code.toString(16).toUpperCase().padStart(4, "0")}`;
  return element;
}
