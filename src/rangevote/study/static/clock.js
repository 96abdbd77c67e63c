// How long an item was looked at, how fast it goes, and how long the rest will take.

const RECENT = 20;
const ENOUGH = 3;

export class Clock {
  constructor() {
    /** @type {number[]} */
    this.recent = [];
    this.spent = 0;
    /**
     * When the item came into sight; null while it is not.
     * @type {number | null}
     */
    this.since = null;
    this.start();
    document.addEventListener("visibilitychange", () => (document.hidden ? this.pause() : this.goOn()));
  }

  /** A new item is shown. */
  start() {
    this.spent = 0;
    this.since = document.hidden ? null : performance.now();
  }

  pause() {
    this.spent = this.read();
    this.since = null;
  }

  goOn() {
    this.since ??= performance.now();
  }

  /**
   * Milliseconds for which the item was in sight.
   * @returns {number}
   */
  read() {
    const now = this.since === null ? 0 : performance.now() - this.since;
    return Math.min(Math.round(this.spent + now), 86400000);
  }

  /**
   * The item is judged.
   * @returns {number}
   */
  stop() {
    const duration = this.read();
    this.recent = [...this.recent, duration].slice(-RECENT);
    return duration;
  }

  /**
   * Pace and time left, by the median of the last items.
   * @param {number} left items to judge
   */
  summary(left) {
    if (this.recent.length < ENOUGH || !left) return "";
    const sorted = [...this.recent].sort((a, b) => a - b);
    const typical = Math.max(sorted[sorted.length >> 1], 1);
    const rate = 60000 / typical;
    const minutes = Math.ceil((left * typical) / 60000);
    const time = minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
    return `about ${rate < 10 ? rate.toFixed(1) : Math.round(rate)} a minute, ${time} left`;
  }
}
