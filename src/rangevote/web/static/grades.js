// Who supports whom: the map of all grades, clusters of like candidates together, and the pair of the current cell.

import { HeatMap } from "./heatmap.js";
import { colourNumber } from "./members.js";
import { button, faint, make, output, scrolling } from "./text.js";
import { counted, fixed, grouped, small } from "./numbers.js";
import { showPair } from "./pair.js";
import { rowOf } from "./top.js";
import { votersOf } from "./words.js";

/** Rows of the table that are made at a time. */
const ROWS = 50;

/**
 * @param {HTMLElement} container
 * @param {import("./answers").Grades} graded the answer api/ballots/N/grades
 * @param {import("./answers").Election} election
 * @param {import("./pair.js").Pair["whole"]} whole asks for a text in full
 * @returns {(voter: number, candidate: number) => void} shows a pair
 */
export function showGrades(container, graded, election, whole) {
  if (!graded.voters.length) {
    container.replaceChildren(faint(`Under the rule ${election.rule} nobody votes.`));
    return () => {};
  }
  const view = new View(graded, election);
  const panel = make("div", { id: "pair", class: "card", role: "region", "aria-label": "Voter and candidate of the current cell", tabindex: 0 });
  const canvas = make("canvas", {
    id: "heatmap",
    tabindex: 0,
    role: "application",
    "aria-roledescription": "heat map",
    "aria-label": "Grades: arrow keys move, Enter goes to the two texts",
    "aria-describedby": "pair-grade",
  });
  const box = make("div", { class: "scroll map" }, canvas);
  /** @param {number} voter @param {number} candidate @param {number | null} grade */
  const pair = (voter, candidate, grade) => {
    const row = view.voters.get(voter);
    if (row) showPair(panel, { whole, election, voter: row, candidate: rowOf(election, candidate), grade });
    else panel.replaceChildren(faint(`The text of voter ${voter} is not listed.`));
  };
  const map = new HeatMap(canvas, box, {
    move: (row, column) => {
      const [r, c] = [view.rows()[row], view.columns()[column]];
      pair(graded.voters[r], graded.candidates[c], graded.grades[r][c]);
    },
    open: () => panel.focus(),
  });
  const table = make("div");
  const numbers = make("details", { id: "numbers" }, make("summary", {}, "The same numbers as a table"), table);
  const redraw = () => {
    map.show(view.grid());
    if (numbers.open) tabulate(table, view, 0);
  };
  numbers.addEventListener("toggle", () => numbers.open && tabulate(table, view, 0));
  const changed = () => {
    redraw();
    map.moveTo(map.row, map.column);
  };
  const left = make("div", {}, box, scaleOf(view), clusterList(graded, view.panel));
  container.replaceChildren(view.explained(), toggles(view, changed), make("div", { class: "map-and-pair" }, left, panel), numbers);
  redraw();
  /** @param {number} voter @param {number} candidate */
  const show = (voter, candidate) => {
    const row = view.rows().findIndex((r) => graded.voters[r] === voter);
    const column = view.columns().findIndex((c) => graded.candidates[c] === candidate);
    if (row >= 0 && column >= 0) map.moveTo(row, column);
    else pair(voter, candidate, null);
  };
  const first = election.voters.same ? election.most_likely : null; // what the most likely output thinks of the winner
  show(first ?? graded.voters[0], election.winner);
  following(map, redraw);
  return (voter, candidate) => {
    show(voter, candidate);
    panel.scrollIntoView({ block: "center" });
    panel.focus({ preventScroll: true });
  };
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

/** Grades, or grades times weights, in the order of the clusters or of the scores. */
class View {
  /** @param {import("./answers").Grades} graded @param {import("./answers").Election} election */
  constructor(graded, election) {
    this.graded = graded;
    this.election = election;
    this.weighted = false;
    this.byCluster = graded.by_cluster.candidates.length > 2;
    this.panel = election.candidates.rows.some((row) => row.member !== null);
    this.voters = votersOf(election);
    /** @type {Map<number, number>} */
    this.cluster = new Map(graded.clusters.flatMap(({ members }, number) => members.map((one) => [one, number])));
  }

  /** Rows of the grades in the order in which they are shown. */
  rows() {
    return this.byCluster ? this.graded.by_cluster.voters : this.graded.voters.map((_, i) => i);
  }

  /** Columns, likewise. */
  columns() {
    return this.byCluster ? this.graded.by_cluster.candidates : this.graded.candidates.map((_, i) => i);
  }

  /** @param {number} row @param {number} column */
  value(row, column) {
    const grade = this.graded.grades[row][column];
    return this.weighted ? grade * (this.voters.get(this.graded.voters[row])?.weight ?? 0) : grade;
  }

  /** The largest value, for the scale. */
  largest() {
    let largest = this.weighted ? 0 : 1;
    this.graded.grades.forEach((row, r) => row.forEach((_, c) => (largest = Math.max(largest, Math.abs(this.value(r, c))))));
    return largest;
  }

  /** @returns {import("./heatmap.js").Grid} */
  grid() {
    const { graded, election } = this;
    const [rows, columns] = [this.rows(), this.columns()];
    const { same } = election.voters;
    return {
      values: rows.map((row) => columns.map((column) => this.value(row, column))),
      largest: this.largest(),
      rows: rows.map((row) => (same ? String(rowOf(election, graded.voters[row]).rank) : String(row + 1))),
      columns: columns.map((column) => String(rowOf(election, graded.candidates[column]).rank)),
      colours: {
        rows: rows.map((row) => this.colour(graded.voters[row], this.voters.get(graded.voters[row])?.member ?? null, same)),
        columns: columns.map((column) => this.colour(graded.candidates[column], rowOf(election, graded.candidates[column]).member, true)),
      },
    };
  }

  /**
   * The number of a colour at the edge: the member's, where there are members, else that of a candidate's cluster.
   * @param {number} index
   * @param {string | null} member
   * @param {boolean} candidate
   */
  colour(index, member, candidate) {
    if (member !== null) return colourNumber(member);
    return candidate && !this.panel ? this.cluster.get(index) ?? null : null;
  }

  explained() {
    const { election, graded } = this;
    const note = faint("A row shows how alike one voter is to every candidate: the stronger the colour, the more alike. Point at a cell, or move with the arrow keys.");
    if (this.panel) note.append(" At the edges are the colours of the members.");
    const [voters, candidates] = [graded.voters.length, graded.candidates.length];
    if (voters < election.voters.total || candidates < election.candidates.total) {
      note.append(
        ` Shown are the first ${counted(voters, "voter")} of ${grouped(election.voters.total)} and the first ` +
          `${counted(candidates, "candidate")} of ${grouped(election.candidates.total)}.`,
      );
    }
    return note;
  }
}

/**
 * What full colour stands for.
 * @param {View} view
 */
function scaleOf(view) {
  return make("p", { class: "map-scale faint numbers" }, "0 ", make("span", { class: "gradient" }), ` ${small(view.largest())} (full colour)`);
}

/**
 * The clusters by name, with their colours unless these are the members'.
 * @param {import("./answers").Grades} graded
 * @param {boolean} panel
 */
function clusterList(graded, panel) {
  const items = graded.clusters.map(({ name, members }, number) => {
    const swatch = panel ? [] : [make("span", { class: `swatch cluster-${number}` }), " "];
    return make("li", {}, ...swatch, make("q", {}, output(name)), ` × ${grouped(members.length)}`);
  });
  return make("ul", { id: "clusters", class: "chips", "aria-label": "Clusters, by what they say" }, ...items);
}

/** @param {View} view @param {() => void} changed */
function toggles(view, changed) {
  const box = make("div", { class: "toggles" });
  /** @param {string} legend @param {string} name @param {[string, string][]} options @param {string} now @param {(value: string) => void} set */
  const group = (legend, name, options, now, set) => {
    const fields = make("fieldset", { class: "toggle" }, make("legend", {}, legend));
    for (const [value, label] of options) {
      const radio = make("input", { type: "radio", name, id: `${name}-${value}`, value });
      radio.checked = value === now;
      radio.addEventListener("change", () => {
        set(value);
        changed();
      });
      fields.append(make("label", { for: `${name}-${value}` }, radio, ` ${label}`));
    }
    box.append(fields);
  };
  group("Shown", "shown", [["plain", "grade"], ["weighted", "weight × grade"]], "plain", (value) => (view.weighted = value === "weighted"));
  group("Order", "ordered", [["cluster", "clusters"], ["score", "score"]], view.byCluster ? "cluster" : "score", (value) => (view.byCluster = value === "cluster"));
  return box;
}

/**
 * The numbers, some rows at a time.
 * @param {HTMLElement} container
 * @param {View} view
 * @param {number} from first row
 */
function tabulate(container, view, from) {
  const grid = view.grid();
  const to = Math.min(from + ROWS, grid.values.length);
  const head = make("tr", {}, ...["voter", ...grid.columns].map((name) => make("th", { scope: "col" }, name)));
  /** @param {number} value */
  const written = (value) => make("td", {}, view.weighted ? small(value) : fixed(value, 3));
  const body = make("tbody");
  for (let row = from; row < to; row++) {
    body.append(make("tr", {}, make("th", { scope: "row" }, grid.rows[row]), ...grid.values[row].map(written)));
  }
  const description = `Voters ${from + 1} to ${to} of ${grid.values.length}, by candidates, named by their ranks`;
  const table = make("table", { class: "numbers small" }, make("caption", {}, description), make("thead", {}, head), body);
  const pager = make("p");
  if (from > 0) pager.append(button("Voters before", () => tabulate(container, view, from - ROWS)), " ");
  if (to < grid.values.length) pager.append(button("Voters after", () => tabulate(container, view, to)));
  container.replaceChildren(scrolling("Grades as a table", "low", table), pager);
}
