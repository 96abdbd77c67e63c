// Messages that the server has not confirmed. Each lies in localStorage under a key of its own, so that two
// tabs never overwrite each other's; the keys sort in the order of sending. What the server has seen before, it
// recognises by the message's own key, so sending twice does no harm.

/**
 * `replaces` is the answer that it replaces, as far as the page knows.
 * @typedef {{replaces: import("./session").Answer | null, body: {item: string, key: string, time: string, value: import("./session").Answer | null, comment?: string}}} Message
 */

const DIGITS = 15;

export class Outbox {
  /** @param {string} owner the study and annotator whose messages these are */
  constructor(owner) {
    this.prefix = `rangevote.outbox.${owner}.`;
    /**
     * Messages that localStorage would not take.
     * @type {Map<string, Message>}
     */
    this.memory = new Map();
  }

  /**
   * Keep a message until it is confirmed.
   * @param {Message} message
   * @returns {boolean} whether it outlives the page
   */
  put(message) {
    const last = this.waiting().at(-1)?.[0].slice(this.prefix.length, this.prefix.length + DIGITS);
    const stamp = Math.max(Date.now(), Number(last ?? 0) + 1); // a clock set back must not change the order
    const name = this.prefix + String(stamp).padStart(DIGITS, "0") + message.body.key;
    try {
      localStorage.setItem(name, JSON.stringify(message));
      return true;
    } catch {
      this.memory.set(name, message);
      return false;
    }
  }

  /**
   * The messages in the order of sending.
   * @returns {[string, Message][]}
   */
  waiting() {
    const messages = [...this.memory];
    try {
      for (let i = 0; i < localStorage.length; i++) {
        const name = localStorage.key(i);
        const kept = name?.startsWith(this.prefix) && localStorage.getItem(name);
        if (name && kept) messages.push([name, JSON.parse(kept)]);
      }
    } catch { /* no storage: memory is all there is */ }
    return messages.sort(([one], [other]) => (one < other ? -1 : 1));
  }

  /** @param {string} name */
  remove(name) {
    this.memory.delete(name);
    try {
      localStorage.removeItem(name);
    } catch { /* no storage */ }
  }
}

/** A key that no other message has; crypto.randomUUID is missing where the page comes over plain HTTP. */
export function freshKey() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
