// The page's elements: shows what it is given and knows nothing of servers.

import { differences } from "/static/diff.js";
import { at, button, make, output } from "/static/text.js";

/** @typedef {import("./session").Answer} Answer */
/** @typedef {import("./session").Item} Item */

/** Words and single signs. */
const WORD = /[\p{L}\p{N}\p{M}_]+|\S/gu;
const SIDES = { wide: { left: "Left", right: "Right" }, narrow: { left: "Upper", right: "Lower" } };
const CANNOT = "Cannot judge";

export class View {
  constructor() {
    /** @type {string[]} */
    this.scale = [];
    this.form = at("form");
    this.image = at("image");
    this.image.addEventListener("error", () => this.pictureFailed(true));
    this.image.addEventListener("load", () => this.pictureFailed(false));
    at("enlarge").addEventListener("click", () => this.enlarge());
    at("close-large").addEventListener("click", () => at("large").close());
    at("large-image").addEventListener("click", () => at("large-image").classList.toggle("actual"));
    at("comment-button").addEventListener("click", () => this.openComment(at("comment").hidden));
    at("comment").addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
      if (event.key === "Escape") at("position").focus();
    });
  }

  /**
   * What stays the same for all items.
   * @param {import("./session").Session} session
   */
  begin(session) {
    document.title = session.title;
    at("title").textContent = session.title;
    at("question").textContent = session.question;
    at("instructions").textContent = session.instructions;
    at("answers").replaceChildren(
      ...session.scale.map((words, i) => answer(i - 2, String(i + 1), worded(words, SIDES.wide), worded(words, SIDES.narrow))),
      answer("cannot", "0", CANNOT, CANNOT),
    );
    at("differences-box").hidden = at("differences-key").hidden = !session.differences;
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
    at("position").textContent = "Practice: this one does not count";
    this.open(item, marked, null, "");
    at("bar").hidden = true;
    at("pace").textContent = "";
    for (const id of ["earlier", "later", "undo"]) at(id).disabled = true;
  }

  /**
   * @param {import("./state.js").Work} work
   * @param {string} pace
   * @param {boolean} marked whether differences are marked
   */
  item(work, pace, marked) {
    at("position").textContent = `Item ${work.position + 1} of ${work.items.length}`;
    this.open(work.item, marked, work.opinion?.value ?? null, work.opinion?.comment ?? "");
    at("bar").hidden = false;
    this.progress(work, pace);
  }

  /**
   * @param {Item} item
   * @param {boolean} marked
   * @param {Answer | null} value
   * @param {string} comment
   */
  open(item, marked, value, comment) {
    at("message").hidden = true;
    at("work").hidden = false;
    this.texts(item, marked);
    at("source-box").hidden = !item.source?.trim();
    show("source", item.source ?? "");
    this.picture(item.image);
    this.choose(value);
    at("comment").value = comment;
    this.openComment(comment !== "", false);
    at("position").focus();
    window.scrollTo(0, 0);
  }

  /** @param {Item} item @param {boolean} marked */
  texts(item, marked) {
    const [left, right] = [wordsOf(item.left), wordsOf(item.right)];
    show("left", item.left, marked ? differences(left, right) : []);
    show("right", item.right, marked ? differences(right, left) : []);
  }

  /** @param {import("./state.js").Work} work @param {string} pace */
  progress(work, pace) {
    at("bar").max = work.items.length;
    at("bar").value = work.judged.size;
    at("pace").textContent = [`${work.judged.size} of ${work.items.length} judged`, pace].filter(Boolean).join(", ");
    at("earlier").disabled = work.position === 0;
    at("later").disabled = work.position >= Math.min(work.firstOpen(), work.items.length - 1);
    at("undo").disabled = work.judged.size === 0;
  }

  /** @param {string | null} path */
  picture(path) {
    at("picture").hidden = path === null;
    if (path === null) return;
    this.pictureFailed(false);
    if (this.image.getAttribute("src") !== path) this.image.src = path;
    else if (this.image.complete && !this.image.naturalWidth) this.pictureFailed(true);
  }

  /** @param {boolean} failed */
  pictureFailed(failed) {
    at("enlarge").hidden = failed;
    at("no-image").hidden = !failed;
  }

  /** Whether there should be a picture and is none. */
  get pictureMissing() {
    return !at("picture").hidden && !(this.image.complete && this.image.naturalWidth > 0);
  }

  /** The picture as large as the window; a click shows it pixel by pixel. */
  enlarge() {
    if (at("picture").hidden || at("enlarge").hidden) return;
    at("large-image").src = this.image.src;
    at("large-image").classList.remove("actual");
    at("large").showModal();
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
    return at("comment").value.trim();
  }

  /** @param {boolean} open @param {boolean} [focus] */
  openComment(open, focus = open) {
    at("comment").hidden = !open;
    at("comment-button").setAttribute("aria-expanded", String(open));
    if (focus) at("comment").focus();
  }

  /** @param {boolean} needed whether an answer has to be saved by a button */
  saveButton(needed) {
    at("next").hidden = !needed;
  }

  /** @param {boolean} locked until the answers before are saved, no other can be given */
  lock(locked) {
    at("scale").disabled = locked;
    at("next").disabled = locked;
    at("next").textContent = locked ? "Saving …" : "Save and continue";
  }

  /** @param {string} text */
  note(text) {
    at("note").textContent = text;
  }

  /** @param {"yes" | "no" | "under-way"} kind @param {string} text */
  saved(kind, text) {
    if (at("saved").textContent === text) return;
    at("saved").className = `saved ${kind}`;
    at("saved").textContent = text;
  }

  /** @param {string} text nothing: no banner @param {boolean} [retry] whether trying again at once may help */
  banner(text, retry = false) {
    const focused = at("banner").contains(document.activeElement);
    at("banner").hidden = !text;
    at("retry").hidden = !retry;
    if (at("banner-text").textContent !== text) at("banner-text").textContent = text;
    if (focused && !retry) at(at("work").hidden ? "message-title" : "position").focus();
  }

  /**
   * A page without an item.
   * @param {string} title
   * @param {string} text
   * @param {[string, () => void][]} buttons
   * @param {Node[]} more between text and buttons
   */
  message(title, text, buttons = [], more = []) {
    at("work").hidden = true;
    at("message").hidden = false;
    at("message-title").textContent = title;
    at("message-text").textContent = text;
    at("message-more").replaceChildren(...more);
    at("message-buttons").replaceChildren(...buttons.map(([name, action]) => button(name, action)));
    at("message-buttons").firstElementChild?.classList.add("primary");
    at("message-title").focus();
  }

  /** @param {import("./state.js").Work} work @returns {Node[]} what was answered how often */
  summary(work) {
    const { left, same, right, cannot, comments } = work.tally();
    const { sides } = this;
    /** @type {[string, number][]} */
    const counts = [
      [`${sides.left} better`, left], ["No difference", same], [`${sides.right} better`, right], [CANNOT, cannot], ["Comments", comments],
    ];
    return [make("dl", { class: "tally" }, ...counts.map(([name, count]) => make("div", {}, make("dt", {}, name), make("dd", {}, String(count)))))];
  }
}

/**
 * Facts as a list.
 * @param {string[]} lines
 */
export function facts(lines) {
  return make("ul", { class: "facts" }, ...lines.map((line) => make("li", {}, line)));
}

/**
 * The code that proves that somebody has finished, to be copied.
 * @param {string} code
 */
export function completionCode(code) {
  const copy = button("Copy", async () => {
    await navigator.clipboard.writeText(code);
    copy.textContent = "Copied";
  });
  copy.hidden = !navigator.clipboard; // over plain HTTP from another machine
  return make("div", { class: "code" }, make("span", {}, "Your completion code:"), make("code", {}, code), copy);
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
  const text = make("span", {}, make("span", { class: "wide" }, wide), make("span", { class: "narrow" }, narrow));
  const radio = make("input", { type: "radio", name: "answer", value });
  return make("label", { class: value === "cannot" ? "cannot" : null }, radio, make("kbd", {}, key), text);
}

/**
 * A text with its words and single signs.
 * @param {string} text
 */
function wordsOf(text) {
  const units = Array.from(text.matchAll(WORD), ({ 0: unit, index: begin = 0 }) => ({ unit, begin, end: begin + unit.length }));
  return { text, units };
}

/** @param {string} words @param {{left: string, right: string}} names */
function worded(words, names) {
  return words.replace("{left}", names.left).replace("{right}", names.right);
}

/**
 * Show a text of the item from its beginning, as text alone: code looks like prose, so that no output looks special.
 * @param {string} id
 * @param {string} text
 * @param {[number, number][]} [marked]
 */
function show(id, text, marked) {
  at(id).replaceChildren(output(text, marked, []));
  at(id).scrollTop = 0;
}
