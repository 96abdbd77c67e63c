// The page's elements: shows what it is given and knows nothing of servers.

import { differences } from "/static/differences.js";
import { element, showText } from "/static/output.js";

/** @typedef {import("./session").Answer} Answer */
/** @typedef {import("./session").Item} Item */

/**
 * An element of study.html, which has them all.
 * @param {string} id
 * @returns {any}
 */
export const get = (id) => document.getElementById(id);

const SIDES = { wide: { left: "Left", right: "Right" }, narrow: { left: "Upper", right: "Lower" } };
const CANNOT = "Cannot judge";

export class View {
  constructor() {
    /** @type {string[]} */
    this.scale = [];
    this.form = get("form");
    this.image = get("image");
    this.image.addEventListener("error", () => this.pictureFailed(true));
    this.image.addEventListener("load", () => this.pictureFailed(false));
    get("enlarge").addEventListener("click", () => this.enlarge());
    get("close-large").addEventListener("click", () => get("large").close());
    get("large-image").addEventListener("click", () => get("large-image").classList.toggle("actual"));
    get("comment-button").addEventListener("click", () => this.openComment(get("comment").hidden));
    get("comment").addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
      if (event.key === "Escape") get("position").focus();
    });
  }

  /**
   * What stays the same for all items.
   * @param {import("./session").Session} session
   */
  begin(session) {
    document.title = session.title;
    get("title").textContent = session.title;
    get("question").textContent = session.question;
    get("instructions").textContent = session.instructions;
    get("answers").replaceChildren(
      ...session.scale.map((words, i) => answer(i - 2, String(i + 1), worded(words, SIDES.wide), worded(words, SIDES.narrow))),
      answer("cannot", "0", CANNOT, CANNOT),
    );
    get("differences-box").hidden = get("differences-key").hidden = !session.differences;
    this.scale = session.scale;
  }

  /** Left and right, as they are called on this screen. */
  get sides() {
    return matchMedia("(max-width: 40rem)").matches ? SIDES.narrow : SIDES.wide;
  }

  /**
   * An answer in the words of the scale, as it is seen now.
   * @param {Answer} value
   */
  words(value) {
    return value === "cannot" ? CANNOT : worded(this.scale[value + 2], this.sides);
  }

  /**
   * The item to practise with: it has no place among the others.
   * @param {Item} item
   * @param {boolean} marked
   */
  practice(item, marked) {
    get("position").textContent = "Practice: this one does not count";
    this.open(item, marked, null, "");
    get("bar").hidden = true;
    get("pace").textContent = "";
    for (const id of ["earlier", "later", "undo"]) get(id).disabled = true;
  }

  /**
   * @param {import("./state.js").Work} work
   * @param {string} pace
   * @param {boolean} marked whether differences are marked
   */
  item(work, pace, marked) {
    get("position").textContent = `Item ${work.position + 1} of ${work.items.length}`;
    this.open(work.item, marked, work.opinion?.value ?? null, work.opinion?.comment ?? "");
    get("bar").hidden = false;
    this.progress(work, pace);
  }

  /**
   * @param {Item} item
   * @param {boolean} marked
   * @param {Answer | null} value
   * @param {string} comment
   */
  open(item, marked, value, comment) {
    get("message").hidden = true;
    get("work").hidden = false;
    this.texts(item, marked);
    get("source-box").hidden = item.source === undefined;
    if (item.source !== undefined) showText(get("source"), item.source, "source");
    this.picture(item.image);
    this.choose(value);
    get("comment").value = comment;
    this.openComment(comment !== "", false);
    get("position").focus();
    window.scrollTo(0, 0);
  }

  /** @param {Item} item @param {boolean} marked */
  texts(item, marked) {
    const [left, right] = (marked && differences(item.left, item.right)) || [];
    showText(get("left"), item.left, "output", left);
    showText(get("right"), item.right, "output", right);
  }

  /** @param {import("./state.js").Work} work @param {string} pace */
  progress(work, pace) {
    get("bar").max = work.items.length;
    get("bar").value = work.judged.size;
    get("pace").textContent = [`${work.judged.size} of ${work.items.length} judged`, pace].filter(Boolean).join(", ");
    get("earlier").disabled = work.position === 0;
    get("later").disabled = work.position >= Math.min(work.firstOpen(), work.items.length - 1);
    get("undo").disabled = work.judged.size === 0;
  }

  /** @param {string | undefined} path */
  picture(path) {
    get("picture").hidden = path === undefined;
    if (path === undefined) return;
    this.pictureFailed(false);
    if (this.image.getAttribute("src") !== path) this.image.src = path;
    else if (this.image.complete && !this.image.naturalWidth) this.pictureFailed(true);
  }

  /** @param {boolean} failed */
  pictureFailed(failed) {
    get("enlarge").hidden = failed;
    get("no-image").hidden = !failed;
  }

  /** Whether there should be a picture and is none. */
  get pictureMissing() {
    return !get("picture").hidden && !(this.image.complete && this.image.naturalWidth > 0);
  }

  /** The picture as large as the window; a click shows it pixel by pixel. */
  enlarge() {
    if (get("picture").hidden || get("enlarge").hidden) return;
    get("large-image").src = this.image.src;
    get("large-image").classList.remove("actual");
    get("large").showModal();
  }

  /** @returns {Answer | null} */
  get chosen() {
    const checked = this.form.querySelector("input:checked");
    return checked ? valueOf(checked) : null;
  }

  /** @param {Answer | null} value */
  choose(value) {
    for (const radio of this.form.querySelectorAll("input")) radio.checked = valueOf(radio) === value;
  }

  get comment() {
    return get("comment").value.trim();
  }

  /** @param {boolean} open @param {boolean} [focus] */
  openComment(open, focus = open) {
    get("comment").hidden = !open;
    get("comment-button").setAttribute("aria-expanded", String(open));
    if (focus) get("comment").focus();
  }

  /** @param {boolean} needed whether an answer has to be saved by a button */
  saveButton(needed) {
    get("next").hidden = !needed;
  }

  /** @param {boolean} locked until the answers before are saved, no other can be given */
  lock(locked) {
    get("scale").disabled = locked;
    get("next").disabled = locked;
    get("next").textContent = locked ? "Saving …" : "Save and continue";
  }

  /** @param {string} text */
  note(text) {
    get("note").textContent = text;
  }

  /** @param {"yes" | "no" | "under-way"} kind @param {string} text */
  saved(kind, text) {
    if (get("saved").textContent === text) return;
    get("saved").className = `saved ${kind}`;
    get("saved").textContent = text;
  }

  /** @param {string} text nothing: no banner @param {boolean} [retry] whether trying again at once may help */
  banner(text, retry = false) {
    const focused = get("banner").contains(document.activeElement);
    get("banner").hidden = !text;
    get("retry").hidden = !retry;
    if (get("banner-text").textContent !== text) get("banner-text").textContent = text;
    if (focused && !retry) get(get("work").hidden ? "message-title" : "position").focus();
  }

  /**
   * A page without an item.
   * @param {string} title
   * @param {string} text
   * @param {[string, () => void][]} buttons
   * @param {Node[]} more between text and buttons
   */
  message(title, text, buttons = [], more = []) {
    get("work").hidden = true;
    get("message").hidden = false;
    get("message-title").textContent = title;
    get("message-text").textContent = text;
    get("message-more").replaceChildren(...more);
    get("message-buttons").replaceChildren(...buttons.map(([name, action], i) => button(name, action, i === 0)));
    get("message-title").focus();
  }

  /** @param {import("./state.js").Work} work @returns {Node[]} what was answered how often */
  summary(work) {
    const { left, same, right, cannot, comments } = work.tally();
    const { sides } = this;
    /** @type {[string, number][]} */
    const counts = [
      [`${sides.left} better`, left], ["No difference", same], [`${sides.right} better`, right], [CANNOT, cannot], ["Comments", comments],
    ];
    const list = element("dl", "tally", "");
    for (const [name, count] of counts) {
      const entry = document.createElement("div");
      entry.append(element("dt", "", name), element("dd", "", String(count)));
      list.append(entry);
    }
    return [list];
  }
}

/**
 * Facts as a list.
 * @param {string[]} lines
 */
export function facts(lines) {
  const list = element("ul", "facts", "");
  list.append(...lines.map((line) => element("li", "", line)));
  return list;
}

/**
 * The code that proves that somebody has finished, to be copied.
 * @param {string} code
 */
export function completionCode(code) {
  const box = element("div", "code", "");
  box.append(element("span", "", "Your completion code:"), element("code", "", code));
  if (navigator.clipboard) { // not over plain HTTP from another machine
    const copy = button("Copy", async () => {
      await navigator.clipboard.writeText(code);
      copy.textContent = "Copied";
    }, false);
    box.append(copy);
  }
  return box;
}

/** @param {HTMLInputElement} radio @returns {Answer} */
export function valueOf(radio) {
  return radio.value === "cannot" ? "cannot" : Number(radio.value);
}

/**
 * A labelled radio button.
 * @param {Answer} value
 * @param {string} key
 * @param {string} wide
 * @param {string} narrow
 */
function answer(value, key, wide, narrow) {
  const label = document.createElement("label");
  if (value === "cannot") label.className = "cannot";
  const radio = document.createElement("input");
  radio.type = "radio";
  radio.name = "answer";
  radio.value = String(value);
  const text = document.createElement("span");
  text.append(element("span", "wide", wide), element("span", "narrow", narrow));
  label.append(radio, element("kbd", "", key), text);
  return label;
}

/** @param {string} words @param {{left: string, right: string}} names */
function worded(words, names) {
  return words.replace("{left}", names.left).replace("{right}", names.right);
}

/** @param {string} name @param {() => void} action @param {boolean} primary */
function button(name, action, primary) {
  const made = element("button", primary ? "primary" : "", name);
  made.setAttribute("type", "button");
  made.addEventListener("click", action);
  return made;
}
