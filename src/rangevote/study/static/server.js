// Talking with the server: what it says, or in which way it could not be reached.

/** Longer than the server waits for its database. */
const PATIENCE = 9000;
/** All the texts of a study, over a slow line. */
const LOADING = 120000;

/** The server cannot be reached: the message waits. */
export class Unreachable extends Error {}
/** The server was reached and did not save: the message waits, and so does the page. */
export class NotSaved extends Error {}
/** The server will never take this. */
export class Refused extends Error {
  /** @param {string} message @param {number} status */
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

export class Server {
  /** @param {string} token the secret of the link */
  constructor(token) {
    this.token = token;
  }

  /**
   * @param {string} path
   * @param {object} [body] none: GET
   * @returns {Promise<any>}
   */
  async ask(path, body) {
    const controller = new AbortController();
    const timer = setTimeout(() => controller.abort(), body ? PATIENCE : LOADING);
    try {
      const headers = { authorization: `Bearer ${this.token}`, "content-type": "application/json" };
      const sent = body ? { method: "POST", body: JSON.stringify(body) } : {};
      return await read(await fetch(path, { headers, signal: controller.signal, ...sent }));
    } catch (error) {
      if (error instanceof NotSaved || error instanceof Refused) throw error;
      throw new Unreachable();
    } finally {
      clearTimeout(timer);
    }
  }
}

/** @param {Response} answer */
async function read(answer) {
  if (answer.ok) return answer.json();
  const content = await answer.json().catch(() => ({}));
  const message = content.error ?? `the server says ${answer.status}`;
  // 429 and 5xx pass; 4xx stay
  if (answer.status === 429 || answer.status >= 500) throw new NotSaved(message);
  throw new Refused(message, answer.status);
}
