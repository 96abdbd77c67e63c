// Who supports whom: a table of all grades, coloured as a map, and the pair of the current cell.

import { colourNumber } from "./members.js";
import { faint, make, output } from "./text.js";
import { counted, fixed, grouped, small } from "./numbers.js";
import { showPair } from "./pair.js";
import { rowOf } from "./top.js";
import { votersOf } from "./words.js";

/** Ranks that are written at an edge of the map; of more rows or columns, every second or third has one. */
const LABELS = 25;

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
  const voters = votersOf(election);
  const panel = make("div", { id: "pair", class: "card", role: "region", "aria-label": "Voter and candidate of the current cell", tabindex: 0 });
  /** @param {number} voter @param {number} candidate @param {number | null} grade */
  const pair = (voter, candidate, grade) => {
    const row = voters.get(voter);
    if (row) showPair(panel, { whole, election, voter: row, candidate: rowOf(election, candidate), grade });
    else panel.replaceChildren(faint(`The text of voter ${voter} is not listed.`));
  };
  const map = new GradeMap(graded, election, pair, () => panel.focus());
  const left = make("div", {}, make("div", { class: "scroll map" }, map.table), map.scale, clusterList(graded, map.panel));
  container.replaceChildren(description(graded, election, map.panel), toggles(map), make("div", { class: "map-and-pair" }, left, panel));
  map.draw();
  /** @param {number} voter @param {number} candidate */
  const show = (voter, candidate) => map.goTo(voter, candidate) || pair(voter, candidate, null);
  const first = election.voters.same ? election.most_likely : null; // what the most likely output thinks of the winner
  show(first ?? graded.voters[0], election.winner);
  return (voter, candidate) => {
    show(voter, candidate);
    panel.scrollIntoView({ block: "center" });
    panel.focus({ preventScroll: true });
  };
}

/** Grades, or grades times weights, in the order of the clusters or of the scores; one cell is the current one. */
class GradeMap {
  /**
   * @param {import("./answers").Grades} graded
   * @param {import("./answers").Election} election
   * @param {(voter: number, candidate: number, grade: number) => void} move shows the pair of the current cell
   * @param {() => void} open goes to the pair
   */
  constructor(graded, election, move, open) {
    this.graded = graded;
    this.election = election;
    this.voters = votersOf(election);
    this.move = move;
    this.open = open;
    this.weighted = false;
    this.numbers = false;
    this.byCluster = graded.by_cluster.candidates.length > 2;
    this.panel = election.candidates.rows.some((row) => row.member !== null);
    /** @type {Map<number, number>} */
    this.cluster = new Map(graded.clusters.flatMap(({ members }, number) => members.map((one) => [one, number])));
    /** @type {HTMLTableElement} */
    this.table = make("table", { id: "map", class: "numbers", role: "grid" });
    this.scale = make("p", { class: "map-scale faint numbers" });
    /** @type {HTMLElement | null} */
    this.cell = null;
    /** @type {number[]} rows and columns of the grades in the order in which they are shown */
    this.rows = [];
    /** @type {number[]} */
    this.columns = [];
    this.table.addEventListener("keydown", (event) => this.pressed(event));
    for (const kind of ["pointerover", "click"]) this.table.addEventListener(kind, (event) => this.pointed(event));
  }

  /** Fill the table; the current pair stays current. */
  draw() {
    const { graded, election, weighted, byCluster } = this;
    this.rows = byCluster ? graded.by_cluster.voters : graded.voters.map((_, i) => i);
    this.columns = byCluster ? graded.by_cluster.candidates : graded.candidates.map((_, i) => i);
    const values = graded.grades.map((row, r) => row.map((grade) => grade * (weighted ? this.voters.get(graded.voters[r])?.weight ?? 0 : 1)));
    const largest = values.flat().reduce((most, value) => Math.max(most, Math.abs(value)), weighted ? 0 : 1);
    const head = this.columns.map((c, i) => this.heading("col", i, this.columns, rowOf(election, graded.candidates[c]), true));
    const body = this.rows.map((r, i) => {
      const voter = this.voters.get(graded.voters[r]) ?? { index: graded.voters[r], member: null };
      const cells = this.columns.map((c) => this.square(values[r][c], largest));
      return make("tr", {}, this.heading("row", i, this.rows, voter, election.voters.same), ...cells);
    });
    this.table.classList.toggle("written", this.numbers);
    this.table.style.setProperty("--columns", String(this.columns.length));
    const caption = make("caption", {}, "Voters in rows, candidates in columns, by rank");
    const top = make("tr", {}, make("td", { class: "corner" }), ...head);
    this.table.replaceChildren(caption, make("thead", {}, top), make("tbody", {}, ...body));
    this.scale.replaceChildren("0 ", make("span", { class: "gradient" }), ` ${small(largest)} (full colour)`);
    const { dataset } = this.table;
    if (dataset.voter) this.goTo(Number(dataset.voter), Number(dataset.candidate));
  }

  /**
   * The rank of a candidate or voter, as many as there is room for, in the colour of its member or cluster.
   * @param {"row" | "col"} scope
   * @param {number} place
   * @param {number[]} all
   * @param {{index: number, member: string | null, rank?: number}} row
   * @param {boolean} candidate
   */
  heading(scope, place, all, { index, member, rank = all[place] + 1 }, candidate) {
    const colour = member !== null ? colourNumber(member) : candidate && !this.panel ? this.cluster.get(index) : undefined;
    const every = this.numbers ? 1 : Math.ceil(all.length / LABELS);
    const label = { scope, class: colour === undefined ? null : `member-${colour}`, "aria-label": String(rank) };
    return make("th", label, place % every ? "" : String(rank));
  }

  /** @param {number} value @param {number} largest */
  square(value, largest) {
    const text = this.weighted ? small(value) : fixed(value, 3);
    const cell = make("td", { tabindex: -1, class: value < 0 ? "negative" : null, "aria-label": text }, this.numbers ? text : "");
    cell.style.setProperty("--share", String(largest > 0 ? Math.min(1, Math.abs(value) / largest) : 0));
    return cell;
  }

  /**
   * Make a pair the current one, if it is in the map.
   * @param {number} voter
   * @param {number} candidate
   */
  goTo(voter, candidate) {
    const row = this.rows.findIndex((r) => this.graded.voters[r] === voter);
    const column = this.columns.findIndex((c) => this.graded.candidates[c] === candidate);
    if (row < 0 || column < 0) return false;
    this.select(this.table.tBodies[0].rows[row].cells[column + 1]);
    return true;
  }

  /** @param {HTMLTableCellElement} cell */
  select(cell) {
    if (this.cell) this.cell.tabIndex = -1;
    this.cell = cell;
    cell.tabIndex = 0;
    const row = this.rows[/** @type {HTMLTableRowElement} */ (cell.parentElement).rowIndex - 1];
    const column = this.columns[cell.cellIndex - 1];
    const [voter, candidate] = [this.graded.voters[row], this.graded.candidates[column]];
    Object.assign(this.table.dataset, { voter, candidate });
    this.move(voter, candidate, this.graded.grades[row][column]);
  }

  /** @param {Event} event */
  pointed(event) {
    const cell = event.target instanceof Element ? event.target.closest("td[tabindex]") : null;
    if (!(cell instanceof HTMLTableCellElement)) return;
    if (cell !== this.cell) this.select(cell);
    if (event.type === "click") this.open();
  }

  /** @param {KeyboardEvent} event */
  pressed(event) {
    if (event.altKey || event.ctrlKey || event.metaKey || !(event.target instanceof HTMLTableCellElement)) return;
    const [row, column] = [/** @type {HTMLTableRowElement} */ (event.target.parentElement).rowIndex, event.target.cellIndex];
    const [last, end] = [this.rows.length, this.columns.length];
    /** @type {Record<string, [number, number]>} */
    const moves = {
      ArrowUp: [row - 1, column],
      ArrowDown: [row + 1, column],
      ArrowLeft: [row, column - 1],
      ArrowRight: [row, column + 1],
      Home: [row, 1],
      End: [row, end],
      PageUp: [1, column],
      PageDown: [last, column],
    };
    if (event.key in moves) {
      const [down, across] = moves[event.key];
      const cell = this.table.rows[Math.max(1, Math.min(last, down))].cells[Math.max(1, Math.min(end, across))];
      this.select(cell);
      cell.focus();
    } else if (event.key === "Enter" || event.key === " ") {
      this.open();
    } else return;
    event.preventDefault();
  }
}

/** @param {import("./answers").Grades} graded @param {import("./answers").Election} election @param {boolean} panel */
function description(graded, election, panel) {
  const note = faint("A row shows how alike one voter is to every candidate: the stronger the colour, the more alike. Point at a cell, or move with the arrow keys.");
  if (panel) note.append(" At the edges are the colours of the members.");
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

/** @param {GradeMap} map */
function toggles(map) {
  /** @param {string} legend @param {string} name @param {[string, string]} labels of no and yes @param {boolean} now @param {(on: boolean) => void} set */
  const group = (legend, name, labels, now, set) => {
    const fields = make("fieldset", { class: "toggle" }, make("legend", {}, legend));
    labels.forEach((label, on) => {
      const radio = make("input", { type: "radio", name, id: `${name}-${on}` });
      radio.checked = Boolean(on) === now;
      radio.addEventListener("change", () => {
        set(Boolean(on));
        map.draw();
      });
      fields.append(make("label", { for: radio.id }, radio, ` ${label}`));
    });
    return fields;
  };
  return make(
    "div",
    { class: "toggles" },
    group("Shown", "weighted", ["grade", "weight × grade"], false, (on) => (map.weighted = on)),
    group("Order", "clustered", ["score", "clusters"], map.byCluster, (on) => (map.byCluster = on)),
    group("As", "numbers", ["colours", "numbers"], false, (on) => (map.numbers = on)),
  );
}
