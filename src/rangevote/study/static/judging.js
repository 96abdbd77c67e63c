// Judging: instructions and one item for practice, then item by item: shows it, keeps the answer, goes on at once.
//
// An answer is put into the outbox before anything else, and the next item is shown while it is sent. If the
// server cannot be reached, the outbox keeps the answers until it can. If the server was reached but could not
// save, or if the browser keeps no data, the page takes no further answer until the last ones are saved.

import { listen } from "/static/keys.js";
import { freshKey, Outbox } from "/static/outbox.js";
import { Clock } from "/static/clock.js";
import { Sender } from "/static/sender.js";
import { Refused } from "/static/server.js";
import { Preferences } from "/static/preferences.js";
import { Work } from "/static/state.js";
import { at } from "/static/text.js";
import { completionCode, facts, valueOf } from "/static/view.js";

/** @typedef {import("./view.js").View} View */
/** @typedef {import("./outbox.js").Message} Message */
/** @typedef {import("./session").Answer} Answer */

/** A tap so many milliseconds after an item came was meant for the one before. */
const TOO_SOON = 250;

const AWAY = "The server cannot be reached. You can go on judging: your answers are kept in this browser and sent when the server is back.";
const FULL = "Not saved: the server cannot save answers at the moment. Your answers are kept in this browser and sent again; please wait.";
const FORGETFUL = "Not saved: the server cannot be reached, and this browser keeps no data. Please wait, and do not close the page.";

export class Study {
  /**
   * @param {import("./server.js").Server} server
   * @param {import("./session").Session} session
   * @param {View} view
   */
  constructor(server, session, view) {
    this.server = server;
    this.session = session;
    this.view = view;
    this.view.begin(session);
    this.work = new Work(session.items, session.judged);
    this.clock = new Clock();
    /** @type {"start" | "practice" | "items"} */
    this.stage = "items";
    this.shown = 0;
    const owner = `${session.study}.${session.annotator}`;
    this.outbox = new Outbox(owner);
    this.sender = new Sender(server, this.outbox, {
      confirmed: (message, answer) => this.confirmed(message, answer),
      refused: (message, error) => this.refused(message, error),
      state: (state) => this.showState(state),
    });
    this.channel = new BroadcastChannel(`rangevote.${owner}`);
    this.channel.onmessage = (event) => this.elsewhere(event.data);
    this.preferences = new Preferences(() => this.adjust());
  }

  start() {
    for (const [, { body }] of this.outbox.waiting()) this.work.set(body.item, body.value, body.comment);
    this.work.advance();
    listen({
      enabled: () => this.preferences.shortcuts && !at("work").hidden && !at("large").open,
      choose: (value) => this.choose(value),
      move: (step) => this.move(step),
      submit: () => this.submit(),
      undo: () => this.undo(),
      comment: () => this.view.openComment(true),
      enlarge: () => this.view.enlarge(),
      differences: () => !at("differences-box").hidden && at("differences").click(),
      help: () => at("how").toggleAttribute("open"),
    });
    at("form").addEventListener("submit", (/** @type {SubmitEvent} */ event) => {
      event.preventDefault();
      this.submit();
    });
    at("answers").addEventListener("click", (/** @type {MouseEvent} */ event) => this.tap(event));
    const actions = { undo: () => this.undo(), earlier: () => this.go(-1), later: () => this.go(1), retry: () => this.retry() };
    for (const [id, action] of Object.entries(actions)) at(id).addEventListener("click", action);
    window.addEventListener("beforeunload", (event) => {
      if (this.outbox.memory.size) event.preventDefault();
    });
    if (this.work.judged.size === 0) this.stage = "start";
    this.adjust();
    this.show();
    this.sender.send();
  }

  /** What is to be seen now: the start, an item, or that there is none left. */
  show() {
    this.clock.start();
    this.shown = performance.now();
    const { session, work } = this;
    if (session.finished) this.showEnd();
    else if (this.stage === "start") this.showStart();
    else if (this.stage === "practice") this.view.practice(session.practice, this.marked);
    else if (work.item) {
      this.view.item(work, this.clock.summary(work.left), this.marked);
      this.preload();
    } else {
      this.view.message(
        work.items.length === 1 ? "The item is judged" : `All ${work.items.length} items are judged`,
        "You can still look back and change answers. When you finish, they are closed.",
        [["Finish", () => this.finish()], ["Look back", () => this.go(-1)]],
        this.view.summary(work),
      );
    }
  }

  showStart() {
    const { items, instructions, practice } = this.session;
    const number = items.length === 1 ? "There is one item." : `There are ${items.length} items.`;
    const lines = [
      `${number} You can stop at any time; this link continues where you stopped.`,
      "Each answer is saved at once. Until you finish, you can undo the last answer and go back to earlier items.",
      "If you cannot judge an item, say so. Comments are optional.",
    ];
    this.view.message("Before you begin", instructions, [
      ["Try one for practice", () => this.enter("practice")],
      ["Begin without practice", () => this.enter("items")],
    ], [facts(lines)]);
    if (practice.image) new Image().src = practice.image;
  }

  showEnd() {
    const { code } = this.session;
    this.view.message("Thank you", "You have finished. Your answers are saved and closed; you can close this page.", [], [
      ...(code === null ? [] : [completionCode(code)]),
      ...this.view.summary(this.work),
    ]);
  }

  /** @param {"start" | "practice" | "items"} stage */
  enter(stage) {
    this.stage = stage;
    this.view.note("");
    this.show();
  }

  /**
   * The item for practice is judged; nothing of it is kept.
   * @param {Answer} value
   */
  practised(value) {
    this.view.message("Practice is done", `You answered: ${this.view.words(value)}. This answer is not kept.`, [
      ["Begin", () => this.enter("items")],
      ["Practise again", () => this.enter("practice")],
    ]);
  }

  /** A switch was changed. */
  adjust() {
    this.view.saveButton(!this.preferences.atOnce);
    if (!at("work").hidden && this.item) this.view.texts(this.item, this.marked);
  }

  /** Whether differences are marked. */
  get marked() {
    return this.session.differences && this.preferences.differences;
  }

  /** The item in sight. */
  get item() {
    return this.stage === "practice" ? this.session.practice : this.work.item;
  }

  preload() {
    for (const item of this.work.items.slice(this.work.position + 1, this.work.position + 3)) {
      if (item.image) new Image().src = item.image;
    }
  }

  /** Whether no answer can be given: what was given is neither saved nor safe. */
  get blocked() {
    return this.sender.state === "not-saved" || (this.sender.state === "waiting" && this.outbox.memory.size > 0);
  }

  /**
   * A tap or click on an answer, where that saves it. A click that a key makes, or a label for its button, has no detail.
   * @param {MouseEvent} event
   */
  tap(event) {
    const radio = event.target instanceof Element && event.target.closest("label")?.querySelector("input");
    if (!radio || event.detail === 0 || !this.preferences.atOnce) return;
    event.preventDefault();
    if (event.detail === 1 && performance.now() - this.shown > TOO_SOON) this.choose(valueOf(radio));
  }

  /** @param {number} step along the scale; to move is not yet to answer */
  move(step) {
    if (this.blocked) return;
    const { chosen } = this.view;
    const value = Math.max(-2, Math.min(2, (typeof chosen === "number" ? chosen : 0) + step));
    this.view.choose(value);
    this.view.note(`Chosen: ${this.view.words(value)}. Enter saves it.`);
  }

  /** @param {Answer} value */
  choose(value) {
    if (this.blocked || !this.item) return;
    this.view.choose(value);
    if (this.preferences.atOnce) this.submit();
    else this.view.note(`Chosen: ${this.view.words(value)}. Enter saves it.`);
  }

  submit() {
    if (this.blocked || !this.item) return;
    const value = this.view.chosen;
    if (value === null) {
      this.view.note("Choose an answer first.");
      return;
    }
    if (this.stage === "practice") {
      this.practised(value);
      return;
    }
    const { comment } = this.view;
    const before = this.work.opinion;
    const { id } = this.item;
    if (value !== before?.value || comment !== before.comment) {
      const body = { item: id, value, comment, duration: this.clock.stop(), image_missing: this.view.pictureMissing };
      this.work.set(id, value, comment);
      this.dispatch(body, before?.value ?? null);
    }
    this.view.note(`Answered: ${this.view.words(value)}.`);
    this.work.advance();
    this.show();
  }

  undo() {
    const [id, last] = this.work.last() ?? [];
    if (this.blocked || this.stage !== "items" || id === undefined || last === undefined) return;
    this.work.set(id, null);
    this.dispatch({ item: id, value: null }, last.value);
    this.work.goTo(id);
    this.show();
    if (last.comment) {
      at("comment").value = last.comment;
      this.view.openComment(true, false);
    }
    this.view.note(`Undone: ${this.view.words(last.value)}.`);
  }

  /** @param {number} step */
  go(step) {
    const to = this.work.position + step;
    if (this.blocked || to < 0 || to > this.work.firstOpen()) return;
    this.work.position = to;
    this.view.note("");
    this.show();
  }

  /**
   * Keep a message and send it.
   * @param {{item: string, value: Answer | null, comment?: string}} body
   * @param {Answer | null} replaces the answer that it replaces, as far as this page knows
   */
  dispatch(body, replaces) {
    this.outbox.put({ replaces, body: { ...body, key: freshKey(), time: new Date().toISOString() } });
    if (this.sender.state === "saved") this.view.saved("under-way", "Saving …");
    else this.showState(this.sender.state);
    this.sender.send();
  }

  /** The reader does not want to wait for the next try. */
  retry() {
    this.view.saved("under-way", "Trying …");
    this.sender.send();
  }

  /** @param {import("./sender.js").State} state how the sender fares */
  showState(state) {
    const waiting = this.outbox.waiting().length;
    if (state === "saved" && !waiting) {
      this.view.banner("");
      this.view.saved("yes", this.work.judged.size ? "Saved" : "");
    } else if (state === "waiting") {
      this.view.banner(this.outbox.memory.size ? FORGETFUL : AWAY, true);
      this.view.saved("no", `Not sent yet: ${waiting}`);
    } else if (state === "not-saved") {
      this.view.banner(FULL, true);
      this.view.saved("no", "Not saved");
    }
    this.view.lock(this.blocked);
  }

  /** @param {Message} message @param {import("./session").SavedAnswer} answer */
  confirmed(message, answer) {
    const { item, comment, key } = message.body;
    this.channel.postMessage({ item, value: answer.value, comment, key });
    this.update(item, answer.value, comment, key);
    const { replaced } = answer;
    if (replaced !== null && replaced !== message.replaces) {
      this.view.note(`This replaces "${this.view.words(replaced)}", which you gave in another window.`);
    }
  }

  /** @param {Message} message @param {Refused} error */
  refused(message, error) {
    this.update(message.body.item, message.replaces);
    this.view.note(`The server did not accept an answer: ${error.message} Reload the page if this does not go away.`);
  }

  /**
   * Another tab of this annotator judged or undid an item.
   * @param {{item: string, value: Answer | null, comment?: string, key: string}} change
   */
  elsewhere({ item, value, comment, key }) {
    const here = this.work.item?.id === item;
    if (this.update(item, value, comment, key) && here && value !== null) {
      this.view.note("The item that was here was judged in another window.");
    }
  }

  /**
   * Take over the answer that the server has, unless a newer one of this browser waits to be sent.
   * @param {string} item
   * @param {Answer | null} value
   * @param {string} [comment]
   * @param {string} [key] of the message it came by, which another window may still see waiting
   * @returns {boolean} whether that changed anything
   */
  update(item, value, comment, key) {
    const newer = this.outbox.waiting().some(([, { body }]) => body.item === item && body.key !== key);
    if (newer || value === (this.work.judged.get(item)?.value ?? null)) return false;
    const here = this.work.item?.id === item;
    this.work.set(item, value, comment);
    if (here || !this.work.item) {
      this.work.advance();
      this.show();
    } else {
      this.view.progress(this.work, this.clock.summary(this.work.left));
    }
    return true;
  }

  async finish() {
    try {
      if ((await this.sender.send()) !== "saved") return;
      Object.assign(this.session, await this.server.ask("/api/finish", {}));
      this.show();
    } catch (error) {
      this.view.banner(error instanceof Refused ? error.message : "The server cannot be reached; try again in a moment.");
    }
  }
}
