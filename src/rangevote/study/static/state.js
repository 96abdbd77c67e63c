// What has been judged, in which order, and what comes next. Knows nothing of the page or the server.

export class Work {
  /**
   * @param {import("./session").Item[]} items in the order of being seen
   * @param {[string, number][]} judged answers by id, in the order of being given
   */
  constructor(items, judged) {
    this.items = items;
    this.judged = new Map(judged);
    this.position = this.firstOpen();
  }

  get item() {
    return this.items[this.position];
  }

  get answer() {
    return this.item && this.judged.get(this.item.id);
  }

  get left() {
    return this.items.length - this.judged.size;
  }

  get done() {
    return this.left === 0;
  }

  /** The first item without an answer; past the end if there is none. */
  firstOpen() {
    const first = this.items.findIndex((item) => !this.judged.has(item.id));
    return first < 0 ? this.items.length : first;
  }

  /** @param {string} id @param {number | null} value null: undone */
  set(id, value) {
    this.judged.delete(id); // the latest answer is the last in the map
    if (value !== null) this.judged.set(id, value);
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
}
