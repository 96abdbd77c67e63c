// Judging: shows an item, keeps the answer, goes on at once.
//
// An answer is put into the outbox before anything else, and the next item is shown while it is sent. If the
// server cannot be reached, the outbox keeps the answers until it can. If the server was reached but could not
// save, or if the browser keeps no data, the page takes no further answer until the last ones are saved.

import { listen } from "/static/keys.js";
import { freshKey, Outbox } from "/static/outbox.js";
import { Clock } from "/static/progress.js";
import { Sender } from "/static/sender.js";
import { Refused } from "/static/server.js";
import { Preferences } from "/static/preferences.js";
import { Work } from "/static/state.js";
import { get, View } from "/static/view.js";

/** @typedef {import("./outbox.js").Message} Message */

const AWAY = "The server cannot be reached. Go on judging: your answers are kept in this browser and sent as soon as it is back.";
const FULL = "Not saved: the server cannot save answers at the moment. Your answers are kept here and tried again; please wait.";
const FORGETFUL = "Not saved: the server cannot be reached, and this browser keeps no data. Please wait, and do not close the page.";

export class Study {
  /** @param {import("./server.js").Server} server @param {import("./session").Session} session */
  constructor(server, session) {
    this.server = server;
    this.view = new View();
    this.view.begin(session);
    this.work = new Work(session.items, session.judged);
    this.clock = new Clock();
    this.finished = session.finished;
    const owner = `${session.study}.${session.annotator}`;
    this.outbox = new Outbox(owner);
    this.sender = new Sender(server, this.outbox, {
      confirmed: (message, answer) => this.confirmed(message, answer),
      refused: (message, error) => this.refused(message, error),
      state: (state) => this.showState(state),
    });
    this.channel = new BroadcastChannel(`rangevote.${owner}`);
    this.channel.onmessage = (event) => this.elsewhere(event.data);
    this.preferences = new Preferences();
  }

  start() {
    for (const [, message] of this.outbox.waiting()) this.work.set(message.body.item, message.body.value ?? null);
    this.work.advance();
    listen({
      enabled: () => this.preferences.shortcuts && !this.finished,
      choose: (value) => this.choose(value),
      move: (step) => this.choose(Math.max(-2, Math.min(2, (this.view.chosen ?? 0) + step))),
      submit: () => this.submit(),
      undo: () => this.undo(),
      help: () => get("how").toggleAttribute("open"),
    });
    get("form").addEventListener("submit", (/** @type {SubmitEvent} */ event) => {
      event.preventDefault();
      this.submit();
    });
    const actions = { undo: () => this.undo(), earlier: () => this.go(-1), later: () => this.go(1), retry: () => this.retry() };
    for (const [id, action] of Object.entries(actions)) get(id).addEventListener("click", action);
    window.addEventListener("beforeunload", (event) => {
      if (this.outbox.memory.size) event.preventDefault();
    });
    get("how").toggleAttribute("open", this.work.judged.size === 0);
    this.show();
    this.sender.send();
  }

  /** The item at hand, or that there is none left. */
  show() {
    this.clock.start();
    if (this.finished) {
      this.view.message("Thank you", "You have finished. Your answers are saved and closed; you can close this page.");
    } else if (this.work.item) {
      this.view.item(this.work, this.clock.summary(this.work.left));
      this.preload();
    } else {
      this.view.message(
        this.work.items.length === 1 ? "The item is judged" : `All ${this.work.items.length} items are judged`,
        "You can still look back and change answers. When you finish, they are closed.",
        [["Finish", () => this.finish()], ["Look back", () => this.go(-1)]],
      );
    }
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

  /** @param {number} value */
  choose(value) {
    if (this.blocked || !this.work.item) return;
    this.view.choose(value);
    if (this.preferences.atOnce) this.submit();
    else this.view.note(`Chosen: ${this.view.words(value)}. Enter saves it.`);
  }

  submit() {
    if (this.blocked || !this.work.item) return;
    const value = this.view.chosen;
    if (value === null) {
      this.view.note("Choose one of the five answers first.");
      return;
    }
    this.view.note("");
    const known = this.work.answer ?? null;
    const { id } = this.work.item;
    if (value !== known) {
      const body = { item: id, value, duration: this.clock.stop(), image_missing: this.view.pictureMissing };
      if (!this.work.judged.size) get("how").removeAttribute("open"); // read by now
      this.work.set(id, value);
      this.dispatch("/api/judgement", body, known);
    }
    this.work.advance();
    this.show();
  }

  undo() {
    const [id, known] = this.work.last() ?? [];
    if (this.blocked || id === undefined || known === undefined) return;
    this.work.set(id, null);
    this.dispatch("/api/undo", { item: id }, known);
    this.work.goTo(id);
    this.show();
    this.view.note(`Undone: ${this.view.words(known)}.`);
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
   * @param {string} path
   * @param {{item: string, value?: number}} body
   * @param {number | null} known the answer that it replaces, as far as this page knows
   */
  dispatch(path, body, known) {
    this.outbox.put({ path, known, body: { ...body, key: freshKey(), time: new Date().toISOString() } });
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

  /** @param {Message} message @param {import("./session").Saved} answer */
  confirmed(message, answer) {
    const { item } = message.body;
    this.channel.postMessage({ item, value: answer.value });
    this.update(item, answer.value);
    const { replaced } = answer;
    if (replaced !== null && replaced !== message.known) {
      this.view.note(`This replaces "${this.view.words(replaced)}", which you gave in another window.`);
    }
  }

  /** @param {Message} message @param {Refused} error */
  refused(message, error) {
    this.update(message.body.item, message.known);
    this.view.note(`The server did not take an answer: ${error.message} Load the page again if this stays.`);
  }

  /**
   * Another tab of this annotator judged or undid an item.
   * @param {{item: string, value: number | null}} change
   */
  elsewhere({ item, value }) {
    const here = this.work.item?.id === item;
    if (this.update(item, value) && here && value !== null) {
      this.view.note("The item that was here was judged in another window.");
    }
  }

  /**
   * Take over the answer that the server has, unless a newer one of this browser waits to be sent.
   * @param {string} item
   * @param {number | null} value
   * @returns {boolean} whether that changed anything
   */
  update(item, value) {
    const newer = this.outbox.waiting().some(([, message]) => message.body.item === item);
    if (newer || value === (this.work.judged.get(item) ?? null)) return false;
    const here = this.work.item?.id === item;
    this.work.set(item, value);
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
      await this.server.ask("/api/finish", {});
      this.finished = true;
      this.show();
    } catch (error) {
      this.view.banner(error instanceof Refused ? error.message : "The server cannot be reached; try again in a moment.");
    }
  }
}
