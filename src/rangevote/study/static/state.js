// What has been judged, in which order, and what comes next. Knows nothing of the page or the server.

/** @typedef {import("./session").Answer} Answer */

export class Work {
  /**
   * @param {import("./session").Item[]} items in the order of being seen
   * @param {[string, Answer, string | null][]} judged answers and comments by id, in the order of being given
   */
  constructor(items, judged) {
    this.items = items;
    /** @type {Map<string, {value: Answer, comment: string}>} */
    this.judged = new Map(judged.map(([id, value, comment]) => [id, { value, comment: comment ?? "" }]));
    this.position = this.firstOpen();
  }

  get item() {
    return this.items[this.position];
  }

  /** What was said of the item at hand. */
  get opinion() {
    return this.item && this.judged.get(this.item.id);
  }

  get left() {
    return this.items.length - this.judged.size;
  }

  /** The first item without an answer; past the end if there is none. */
  firstOpen() {
    const first = this.items.findIndex((item) => !this.judged.has(item.id));
    return first < 0 ? this.items.length : first;
  }

  /**
   * @param {string} id
   * @param {Answer | null} value null: undone
   * @param {string} comment
   */
  set(id, value, comment = "") {
    this.judged.delete(id); // the latest answer is the last in the map
    if (value !== null) this.judged.set(id, { value, comment });
  }

  /** What was judged last and how, or undefined. */
  last() {
    return [...this.judged].at(-1);
  }

  /** @param {string} id */
  goTo(id) {
    this.position = this.items.findIndex((item) => item.id === id);
  }

  /** On to what is not judged yet. */
  advance() {
    this.position = this.firstOpen();
  }

  /**
   * How often left, right or neither was better, and what else there is to sum up.
   * @returns {{left: number, same: number, right: number, cannot: number, comments: number}}
   */
  tally() {
    const opinions = [...this.judged.values()];
    /** @param {(value: Answer) => boolean} kind */
    const count = (kind) => opinions.filter(({ value }) => kind(value)).length;
    return {
      left: count((value) => value !== "cannot" && value < 0),
      same: count((value) => value === 0),
      right: count((value) => value !== "cannot" && value > 0),
      cannot: count((value) => value === "cannot"),
      comments: opinions.filter(({ comment }) => comment).length,
    };
  }
}
