// Brings the outbox to the server: one message at a time, in order, again and again until it is confirmed.

import { NotSaved, Refused, Unreachable } from "/static/server.js";

const FIRST_WAIT = 500;
const LONGEST_WAIT = 10000;

/** @typedef {"saved" | "waiting" | "not-saved"} State */
/** @typedef {import("./outbox.js").Message} Message */

export class Sender {
  /**
   * @param {import("./server.js").Server} server
   * @param {import("./outbox.js").Outbox} outbox
   * @param {{confirmed: (message: Message, answer: any) => void, refused: (message: Message, error: Refused) => void,
   *          state: (state: State) => void}} listener
   */
  constructor(server, outbox, listener) {
    this.server = server;
    this.outbox = outbox;
    this.listener = listener;
    /** @type {State} */
    this.state = "saved";
    this.wait = FIRST_WAIT;
    /** @type {Promise<State> | null} */
    this.running = null;
    this.timer = 0;
    window.addEventListener("online", () => this.send());
  }

  /**
   * Send all that waits; the promise tells how it went. A call while another runs joins it.
   * @returns {Promise<State>}
   */
  send() {
    clearTimeout(this.timer);
    this.running ??= this.run().finally(() => {
      this.running = null;
      // a message put after the last look
      if (this.state === "saved" && this.outbox.waiting().length) this.send();
    });
    return this.running;
  }

  async run() {
    for (let [first] = this.outbox.waiting(); first; [first] = this.outbox.waiting()) {
      const [name, message] = first;
      try {
        const answer = await this.server.ask("/api/judgement", message.body);
        this.outbox.remove(name);
        this.listener.confirmed(message, answer);
      } catch (error) {
        if (error instanceof Refused && error.status !== 404) {
          this.outbox.remove(name);
          this.listener.refused(message, error);
        } else if (error instanceof NotSaved || error instanceof Unreachable || error instanceof Refused) {
          return this.later(error instanceof Unreachable ? "waiting" : "not-saved");
        } else {
          throw error;
        }
      }
    }
    this.wait = FIRST_WAIT;
    return this.become("saved");
  }

  /** @param {State} state */
  later(state) {
    this.timer = setTimeout(() => this.send(), this.wait);
    this.wait = Math.min(2 * this.wait, LONGEST_WAIT);
    return this.become(state);
  }

  /** @param {State} state */
  become(state) {
    this.state = state;
    this.listener.state(state);
    return state;
  }
}
