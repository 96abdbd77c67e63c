// All ballots of a file: what voting changed in them, how firm the winners are, and the way from one to another.

import { ask, exported } from "./ask.js";
import { memberBadge } from "./members.js";
import { counted, grouped, percent, small } from "./numbers.js";
import { at, button, make, output, why } from "./text.js";
import { append } from "./unseen.js";

/** Ballots whose outcomes are listed, and lines that are made at a time. */
const MOST_BALLOTS = 10_000;
const LINES = 200;
/** Bars of the histogram of margins. */
const BINS = 12;

/** @typedef {import("./answers").BallotRow} BallotRow */

/**
 * name -> label, and which ballots it keeps
 * @type {Record<string, [string, (row: BallotRow) => boolean]>}
 */
const FILTERS = {
  changed: ["changed", (row) => row.changed === true],
  fragile: ["fragile", (row) => row.firm === false],
  tie: ["near tie", (row) => row.near_tie === true],
};

/**
 * Where what is not known comes last.
 * @param {number | null} number
 * @param {number} [sign]
 */
const last = (number, sign = 1) => (number === null ? Infinity : sign * number);

/**
 * name -> label, and what ballots are sorted by; smaller comes first
 * @type {Record<string, [string, (row: BallotRow) => number]>}
 */
const SORTS = {
  number: ["their order", (row) => row.number],
  margin: ["smallest lead", (row) => last(row.margin)],
  firm: ["most fragile", (row) => last(row.stays)],
  gain: ["largest gain", (row) => last(row.gain, -1)],
  loss: ["largest loss", (row) => last(row.gain)],
};

/** The list of ballots beside the page. */
export class Rail {
  /**
   * @param {import("./answers").About} about the answer api/election
   * @param {(position: {number?: number, list?: number}) => void} go
   * @param {(message: string) => void} showProblem
   */
  constructor(about, go, showProblem) {
    this.about = about;
    this.go = go;
    this.showProblem = showProblem;
    /** @type {BallotRow[]} */
    this.rows = [];
    /** @type {BallotRow[]} */
    this.chosen = [];
    this.number = 0;
    this.lines = LINES;
  }

  start() {
    const { about, go } = this;
    const several = about.kept > 1;
    at("rail").hidden = !several;
    document.body.classList.toggle("with-rail", several);
    at("steps").hidden = !several;
    about.lists.forEach((list, i) => at("list").append(make("option", { value: i }, list.name)));
    at("lists").hidden = about.lists.length < 2;
    at("list").addEventListener("change", () => go({ list: Number(at("list").value) }));
    if (!several) return;
    at("previous").addEventListener("click", () => this.step(-1));
    at("next").addEventListener("click", () => this.step(1));
    at("find").addEventListener("submit", (/** @type {SubmitEvent} */ event) => {
      event.preventDefault();
      this.find(at("wanted").value.trim()).then((number) => go({ number }), (error) => this.showProblem(error.message));
    });
    for (const [name, [label]] of Object.entries(FILTERS)) {
      const box = make("input", { type: "checkbox", id: `only-${name}` });
      box.addEventListener("change", () => this.draw(LINES));
      at("filters").append(make("label", { for: `only-${name}` }, box, ` ${label}`));
    }
    at("contains").addEventListener("input", () => this.draw(LINES));
    for (const [name, [label]] of Object.entries(SORTS)) at("sort").append(make("option", { value: name }, label));
    at("sort").addEventListener("change", () => this.draw(LINES));
    addEventListener("keydown", (event) => this.pressed(event));
    const wide = matchMedia("(min-width: 70rem)");
    const follow = () => (at("rail-box").open = wide.matches);
    wide.addEventListener("change", follow);
    follow();
  }

  /** Ask for all outcomes, some ballots at a time. */
  async load() {
    if (this.about.kept < 2) return;
    const pages = Math.ceil(Math.min(this.about.kept, MOST_BALLOTS) / this.about.page);
    try {
      for (let page = 0; page < pages; page++) {
        /** @type {import("./answers").BallotRow[]} */
        const rows = await ask(`api/ballots?page=${page}`);
        this.rows.push(...rows);
        this.draw(this.lines);
      }
      document.documentElement.dataset.listed = String(Math.round(performance.now()));
    } catch (error) {
      this.showProblem(why(error));
    }
  }

  /** @param {KeyboardEvent} event */
  pressed(event) {
    if (event.altKey || event.ctrlKey || event.metaKey || event.repeat) return;
    if (event.target instanceof Element && event.target.closest("input, select, textarea, [role=application]")) return;
    if (event.key === "j") this.step(1);
    if (event.key === "k") this.step(-1);
  }

  /**
   * To the next ballot of those that are chosen.
   * @param {number} by
   */
  step(by) {
    const to = this.neighbour(by);
    if (to !== null) this.go({ number: to });
  }

  /** @param {number} by @returns {number | null} */
  neighbour(by) {
    const place = this.chosen.findIndex((row) => row.number === this.number);
    const row = place >= 0 ? this.chosen[place + by] : this.chosen[by > 0 ? 0 : this.chosen.length - 1];
    if (this.filtered() || (place >= 0 && row)) return row?.number ?? null;
    const to = this.number + by;
    return to >= 0 && to < this.about.kept ? to : null;
  }

  /** Whether some ballots are left out, or they stand in another order. */
  filtered() {
    return at("contains").value !== "" || at("sort").value !== "number" || Object.keys(FILTERS).some((name) => at(`only-${name}`).checked);
  }

  /**
   * A ballot by its id, or by its number from 1.
   * @param {string} wanted
   * @returns {Promise<number>}
   */
  async find(wanted) {
    const answer = await ask(`api/find?id=${encodeURIComponent(wanted)}`).catch((error) => {
      if (exported) return { number: null }; // a file keeps only the ids that are there
      throw error;
    });
    if (answer.number !== null) return answer.number;
    const number = Number(wanted);
    if (Number.isInteger(number) && number >= 1 && number <= this.about.kept) return number - 1;
    const allowed = `give an id, or a number from 1 to ${grouped(this.about.kept)}`;
    throw new Error(`There is no ballot ${wanted || "without a name"}: ${allowed}.`);
  }

  /**
   * Show where the page is.
   * @param {{number: number, list: number}} position
   * @param {string | number | null} id
   */
  show(position, id) {
    const { about } = this;
    this.number = position.number;
    at("list").value = String(position.list);
    const left = about.kept < about.ballots ? ` (the first of ${grouped(about.ballots)})` : "";
    at("position").textContent = about.kept > 1 ? `Ballot ${grouped(position.number + 1)} of ${grouped(about.kept)}${left}` : "";
    if (id !== null) append(at("position"), about.kept > 1 ? `, id ${id}` : `${id}`);
    if (about.kept > 1) this.mark();
  }

  /** Mark the ballot that is looked at, and what can be reached from it. */
  mark() {
    at("previous").disabled = this.neighbour(-1) === null;
    at("next").disabled = this.neighbour(1) === null;
    for (const line of at("ballot-list").querySelectorAll("[aria-current]")) line.removeAttribute("aria-current");
    const current = at("ballot-list").querySelector(`[data-number="${this.number}"]`);
    current?.setAttribute("aria-current", "true");
    if (current && at("rail-box").open && matchMedia("(min-width: 70rem)").matches) current.scrollIntoView({ block: "nearest" });
  }

  /**
   * The overview and the list of those that are chosen.
   * @param {number} lines
   */
  draw(lines) {
    this.lines = lines;
    const wanted = at("contains").value.trim().toLowerCase();
    const filters = Object.entries(FILTERS).filter(([name]) => at(`only-${name}`).checked);
    /** @param {BallotRow} row */
    const contains = (row) => [row.id, row.title, row.winner, row.likely, row.member].some((text) => String(text ?? "").toLowerCase().includes(wanted));
    this.chosen = this.rows.filter((row) => filters.every(([, [, keeps]]) => keeps(row)) && contains(row));
    const by = SORTS[at("sort").value || "number"][1];
    if (at("sort").value !== "number") this.chosen.sort((one, other) => by(one) - by(other) || one.number - other.number);
    at("overview").replaceChildren(...overview(this.rows, this.about));
    at("chosen").textContent = this.chosen.length < this.rows.length ? `${grouped(this.chosen.length)} of ${counted(this.rows.length, "ballot")}` : "";
    at("ballot-list").replaceChildren(...this.chosen.slice(0, lines).map((row) => this.line(row)));
    const left = this.chosen.length - lines;
    at("more-ballots").replaceChildren(...(left > 0 ? [button(`Show ${grouped(Math.min(left, LINES))} more`, () => this.draw(lines + LINES))] : []));
    this.mark();
  }

  /** @param {BallotRow} row */
  line(row) {
    const link = make("a", { href: `#ballot=${row.number + 1}`, "data-number": row.number });
    link.addEventListener("click", (/** @type {Event} */ event) => {
      event.preventDefault();
      this.go({ number: row.number });
    });
    const name = make("span", { class: "name faint" });
    append(name, row.id === null ? String(row.number + 1) : `${row.number + 1} · ${row.id}`);
    const signs = [];
    if (row.error !== null) signs.push(make("span", { class: "badge tie" }, "cannot be voted on"));
    if (row.no_winner !== null) signs.push(make("span", { class: "badge tie", title: row.no_winner }, "no winner"));
    else if (row.near_tie) signs.push(make("span", { class: "badge tie" }, "near tie"));
    else if (FILTERS.fragile[1](row)) signs.push(make("span", { class: "badge fragile" }, "fragile"));
    if (row.changed) signs.push(make("span", { class: "badge won" }, "changed"));
    if (row.gain !== null && row.changed) signs.push(make("span", { class: "numbers faint" }, `${row.gain < 0 ? "−" : "+"}${Math.abs(row.gain).toFixed(1)}`));
    const text = (row.winner ?? row.title).slice(0, 90);
    link.append(name, make("span", { class: "signs" }, ...signs), make("span", { class: "says" }, output(text)), ...(row.member === null ? [] : [memberBadge(row.member)]));
    return make("li", {}, link);
  }
}

/**
 * What voting did to the whole file.
 * @param {BallotRow[]} rows
 * @param {import("./answers").About} about
 */
function overview(rows, about) {
  const comparable = rows.filter((row) => row.changed !== null);
  const changed = comparable.filter((row) => row.changed);
  const parts = [];
  if (comparable.length) {
    const share = make("strong", {}, percent(changed.length / comparable.length));
    parts.push(make("p", {}, share, ` of ${counted(comparable.length, "ballot")}: voting changed the choice`));
  }
  const judged = changed.filter((row) => row.gain !== null);
  if (judged.length) {
    const better = judged.filter((row) => (row.gain ?? 0) > 0.05).length;
    const worse = judged.filter((row) => (row.gain ?? 0) < -0.05).length;
    const mean = judged.reduce((sum, row) => sum + (row.gain ?? 0), 0) / judged.length;
    const text = `Of these, the elected output is nearer to the references in ${grouped(better)}, further in ${grouped(worse)}`;
    parts.push(make("p", { id: "gains" }, `${text} (chrF ${mean < 0 ? "−" : "+"}${Math.abs(mean).toFixed(1)} on average).`));
  }
  const margins = rows.flatMap((row) => (row.margin === null ? [] : [row.margin]));
  if (margins.length > 1) parts.push(histogram(margins));
  if (rows.length < about.kept) {
    const most = Math.min(about.kept, MOST_BALLOTS);
    const text = rows.length < most ? `${grouped(rows.length)} of ${grouped(most)} counted…` : `The first ${grouped(most)} are listed.`;
    parts.push(make("p", { class: "faint" }, text));
  }
  return parts;
}

/**
 * How large the leads are.
 * @param {number[]} margins
 */
function histogram(margins) {
  const sorted = [...margins].sort((one, other) => one - other);
  const most = sorted[Math.floor(0.95 * (sorted.length - 1))] || sorted[sorted.length - 1] || 1;
  const counts = new Array(BINS).fill(0);
  for (const margin of margins) counts[Math.min(BINS - 1, Math.max(0, Math.floor((BINS * margin) / most)))]++;
  const tallest = Math.max(...counts);
  const bars = counts.map((count) => {
    const one = make("span", { title: `${grouped(count)} ballots` });
    one.style.height = `${(100 * count) / tallest}%`;
    return one;
  });
  const label = `Leads: half of the ballots are below ${small(sorted[Math.floor(sorted.length / 2)])}`;
  const picture = make("div", { class: "histogram", role: "img", "aria-label": label }, ...bars);
  const ends = make("p", { class: "ends faint numbers" }, make("span", {}, "0"), make("span", {}, "lead"), make("span", {}, `${small(most)} and more`));
  return make("div", { title: label }, picture, ends);
}
