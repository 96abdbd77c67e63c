// Keys for all that is done often. They can be switched off, and stay out of the way of the browser's own.

/**
 * @typedef {{enabled: () => boolean, choose: (value: import("./session").Answer) => void, move: (step: number) => void,
 *            submit: () => void, undo: () => void, comment: () => void, enlarge: () => void, differences: () => void,
 *            help: () => void}} Actions
 */

/** @param {Actions} actions */
export function listen(actions) {
  document.addEventListener("keydown", (event) => {
    // event.repeat: a key held down must not judge the next item as well
    if (event.repeat || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) {
      if (event.repeat && event.key === "Enter" && !isTyping(event.target)) event.preventDefault();
      return;
    }
    if (!actions.enabled() || isTyping(event.target)) return;
    const act = action(event, actions);
    if (!act) return;
    event.preventDefault();
    act();
  });
}

/** @param {EventTarget | null} target */
function isTyping(target) {
  return target instanceof HTMLElement && target.matches("textarea, select, [contenteditable], input:not([type=radio], [type=checkbox])");
}

/** @param {KeyboardEvent} event @param {Actions} actions */
function action(event, actions) {
  const digit = "12345".indexOf(event.key);
  if (digit >= 0) return () => actions.choose(digit - 2);
  if (event.key === "0") return () => actions.choose("cannot");
  /** @type {Record<string, () => void>} */
  const letters = {
    u: actions.undo, backspace: actions.undo, c: actions.comment, e: actions.enlarge, d: actions.differences, "?": actions.help,
  };
  const letter = letters[event.key.toLowerCase()];
  if (letter) return letter;
  // a button, a link or a scroll box under the focus has its own use for these
  const target = event.target instanceof HTMLElement ? event.target : document.body;
  if (event.key === "Enter" && !target.matches("button, summary, a, input[type=checkbox]")) return actions.submit;
  if (target.matches(".text, input")) return null;
  if (event.key === "ArrowLeft") return () => actions.move(-1);
  if (event.key === "ArrowRight") return () => actions.move(1);
  return null;
}
