// The page's elements: shows what it is given and knows nothing of servers.

import { element, showText } from "/static/output.js";

/**
 * An element of study.html, which has them all.
 * @param {string} id
 * @returns {any}
 */
export const get = (id) => document.getElementById(id);

const SIDES = { wide: { left: "Left", right: "Right" }, narrow: { left: "Upper", right: "Lower" } };

export class View {
  constructor() {
    /** @type {string[]} */
    this.scale = [];
    this.form = get("form");
    this.image = get("image");
    this.image.addEventListener("error", () => this.pictureFailed(true));
    this.image.addEventListener("load", () => this.pictureFailed(false));
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
    get("answers").replaceChildren(...session.scale.map(answer));
    this.scale = session.scale;
  }

  /**
   * An answer in the words of the scale, as it is seen now.
   * @param {number} value
   */
  words(value) {
    const names = matchMedia("(max-width: 40rem)").matches ? SIDES.narrow : SIDES.wide;
    return worded(this.scale[value + 2], names);
  }

  /**
   * @param {import("./state.js").Work} work
   * @param {string} pace
   */
  item(work, pace) {
    get("message").hidden = true;
    get("work").hidden = false;
    const { item } = work;
    get("position").textContent = `Item ${work.position + 1} of ${work.items.length}`;
    showText(get("left"), item.left);
    showText(get("right"), item.right);
    get("source-box").hidden = item.source === undefined;
    if (item.source !== undefined) showText(get("source"), item.source, "source");
    this.picture(item.image);
    this.choose(work.answer ?? null);
    this.progress(work, pace);
    get("position").focus();
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
    this.image.hidden = failed;
    get("no-image").hidden = !failed;
  }

  /** Whether there should be a picture and is none. */
  get pictureMissing() {
    return !get("picture").hidden && !(this.image.complete && this.image.naturalWidth > 0);
  }

  /** @returns {number | null} */
  get chosen() {
    const checked = this.form.querySelector("input:checked");
    return checked ? Number(checked.value) : null;
  }

  /** @param {number | null} value */
  choose(value) {
    for (const radio of this.form.querySelectorAll("input")) radio.checked = Number(radio.value) === value;
  }

  /** @param {boolean} locked until the answers before are saved, no other can be given */
  lock(locked) {
    get("scale").disabled = locked;
    get("next").disabled = locked;
    get("next").textContent = locked ? "Saving …" : "Save and go on";
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
   */
  message(title, text, buttons = []) {
    get("work").hidden = true;
    get("message").hidden = false;
    get("message-title").textContent = title;
    get("message-text").textContent = text;
    get("message-buttons").replaceChildren(...buttons.map(([name, action], i) => button(name, action, i === 0)));
    get("message-title").focus();
  }
}

/**
 * A labelled radio button.
 * @param {string} words
 * @param {number} index
 */
function answer(words, index) {
  const label = document.createElement("label");
  const radio = document.createElement("input");
  radio.type = "radio";
  radio.name = "answer";
  radio.value = String(index - 2);
  const text = document.createElement("span");
  text.append(
    element("span", "wide", worded(words, SIDES.wide)),
    element("span", "narrow", worded(words, SIDES.narrow)),
  );
  label.append(radio, element("kbd", "", String(index + 1)), text);
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
