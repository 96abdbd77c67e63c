// Who supports whom: the heat map, what its current cell says, and the same numbers as a table.

import { HeatMap } from "./heatmap.js";
import { button, brief, faint, make, scrolling } from "./text.js";
import { counted, fixed, grouped, small } from "./numbers.js";
import { rowOf, voterTexts } from "./parts.js";

/** Rows of the table that are made at a time. */
const ROWS = 50;

/**
 * @param {HTMLElement} container
 * @param {import("./answers").Grades} graded the answer api/ballots/N/grades
 * @param {import("./answers").Election} election
 * @param {(voter: number, candidate: number, grade: number) => void} open shows a pair of texts
 */
export function showGrades(container, graded, election, open) {
  if (!graded.voters.length) {
    container.replaceChildren(faint(`Under the rule ${election.rule} nobody votes.`));
    return;
  }
  const view = new View(graded, election);
  const description = make("p", { id: "cell", "aria-live": "polite", class: "numbers" });
  const canvas = make("canvas", {
    id: "heatmap",
    tabindex: 0,
    role: "application",
    "aria-roledescription": "heat map",
    "aria-label": "Grades: arrow keys move, Enter shows the two texts",
    "aria-describedby": "cell",
  });
  const box = make("div", { class: "scroll map" }, canvas);
  const map = new HeatMap(canvas, box, {
    move: (row, column) => description.replaceChildren(...view.describe(row, column)),
    open: (row, column) => open(graded.voters[row], graded.candidates[column], graded.grades[row][column]),
  });
  const table = make("div");
  const numbers = make("details", { id: "numbers" }, make("summary", {}, "The same numbers as a table"), table);
  const redraw = () => {
    map.show(view.grid());
    if (numbers.open) tabulate(table, view, 0, open);
  };
  numbers.addEventListener("toggle", () => numbers.open && tabulate(table, view, 0, open));
  const changed = () => {
    redraw();
    map.moveTo(map.row, map.column);
  };
  container.replaceChildren(view.explained(), toggle(view, changed), box, description, numbers);
  redraw();
  map.moveTo(0, 0);
  following(map, redraw);
}

/** @type {AbortController | null} */
let watching = null;

/**
 * Draw again when the width or the colours change; only the latest map does.
 * @param {HeatMap} map
 * @param {() => void} redraw
 */
function following(map, redraw) {
  watching?.abort();
  watching = new AbortController();
  const { signal } = watching;
  addEventListener("resize", () => map.fit(), { signal });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw, { signal });
}

/** Grades, or grades times weights, with the names of rows and columns. */
class View {
  /** @param {import("./answers").Grades} graded @param {import("./answers").Election} election */
  constructor(graded, election) {
    this.graded = graded;
    this.election = election;
    this.weighted = false;
    this.texts = voterTexts(election);
    this.weights = new Map(election.voters.rows.map((row) => [row.index, row.weight]));
  }

  /** @param {number} row @param {number} column */
  value(row, column) {
    const grade = this.graded.grades[row][column];
    return this.weighted ? grade * (this.weights.get(this.graded.voters[row]) ?? 0) : grade;
  }

  /** @returns {import("./heatmap.js").Grid} */
  grid() {
    const values = this.graded.grades.map((row, r) => row.map((_, c) => this.value(r, c)));
    let largest = this.weighted ? 0 : 1;
    for (const row of values) for (const value of row) largest = Math.max(largest, Math.abs(value));
    return {
      values,
      largest,
      rows: this.graded.voters.map((_, i) => String(i + 1)),
      columns: this.graded.candidates.map((index) => String(rowOf(this.election, index).rank)),
    };
  }

  explained() {
    const { election, graded } = this;
    const order = election.voters.same ? "both in the order of the scores" : "candidates by score, voters by weight";
    const note = faint(
      `Rows are voters, columns are candidates, ${order}. Grades need not be symmetric: a row shows what one voter ` +
        "thinks of everybody.",
    );
    const [voters, candidates] = [graded.voters.length, graded.candidates.length];
    if (voters < election.voters.total || candidates < election.candidates.total) {
      note.append(
        ` Shown are the first ${counted(voters, "voter")} of ${grouped(election.voters.total)} and the first ` +
          `${counted(candidates, "candidate")} of ${grouped(election.candidates.total)}.`,
      );
    }
    return note;
  }

  /**
   * What the current cell says.
   * @param {number} row
   * @param {number} column
   */
  describe(row, column) {
    const [voter, candidate] = [this.graded.voters[row], this.graded.candidates[column]];
    const grade = this.graded.grades[row][column];
    const weight = this.weights.get(voter) ?? 0;
    const text = this.texts.get(voter);
    return [
      make("span", { class: "line" }, `Voter ${row + 1}: `, text ? brief(text) : "–"),
      make("span", { class: "line" }, `Candidate ${column + 1}: `, brief(rowOf(this.election, candidate))),
      make("span", { class: "line" }, `grade ${fixed(grade)} × weight ${small(weight)} = ${small(grade * weight)}`),
    ];
  }
}

/** @param {View} view @param {() => void} changed */
function toggle(view, changed) {
  const group = make("fieldset", { class: "toggle" }, make("legend", { class: "hidden-visually" }, "What is shown"));
  for (const [name, label] of [["plain", "grade sim(v, c)"], ["weighted", "weight × grade"]]) {
    const radio = make("input", { type: "radio", name: "shown", id: `shown-${name}`, value: name });
    radio.checked = (name === "weighted") === view.weighted;
    radio.addEventListener("change", () => {
      view.weighted = name === "weighted";
      changed();
    });
    group.append(make("label", { for: `shown-${name}` }, radio, ` ${label}`));
  }
  return group;
}

/**
 * The numbers, some rows at a time.
 * @param {HTMLElement} container
 * @param {View} view
 * @param {number} from first row
 * @param {(voter: number, candidate: number, grade: number) => void} open
 */
function tabulate(container, view, from, open) {
  const { voters, candidates, grades } = view.graded;
  const to = Math.min(from + ROWS, voters.length);
  const grid = view.grid();
  const head = make("tr", {}, ...["voter", ...grid.columns].map((name) => make("th", { scope: "col" }, name)));
  /** @param {number} value */
  const written = (value) => make("td", {}, view.weighted ? small(value) : fixed(value, 3));
  const body = make("tbody");
  for (let row = from; row < to; row++) {
    const line = make("tr", {}, make("th", { scope: "row" }, grid.rows[row]));
    line.append(...grid.values[row].map(written));
    body.append(line);
  }
  body.addEventListener("click", (/** @type {any} */ event) => {
    const cell = event.target.closest("td");
    if (!cell) return;
    const [row, column] = [from + cell.parentElement.sectionRowIndex, cell.cellIndex - 1];
    open(voters[row], candidates[column], grades[row][column]);
  });
  const description = `Voters ${from + 1} to ${to} of ${voters.length}, by candidates in the order of their ranks`;
  const table = make("table", { class: "numbers small" }, make("caption", {}, description), make("thead", {}, head), body);
  const pager = make("p");
  if (from > 0) pager.append(button("Voters before", () => tabulate(container, view, from - ROWS, open)), " ");
  if (to < voters.length) pager.append(button("Voters after", () => tabulate(container, view, to, open)));
  container.replaceChildren(scrolling("Grades as a table", "low", table), pager);
}
