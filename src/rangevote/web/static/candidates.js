// The table of candidates: one row each, sorted by what the reader asks; one of them is chosen.

import { button, brief, faint, make } from "./text.js";
import { fixed, grouped, probability } from "./numbers.js";

/**
 * name -> [label, what rows are sorted by; smaller comes first]
 * @type {Record<string, [string, (row: import("./answers").Candidate) => number]>}
 */
const COLUMNS = {
  rank: ["Rank", (row) => row.rank],
  score: ["Score", (row) => row.rank],
  likely: ["P", (row) => row.likelihood_rank ?? Infinity],
  likelihood: ["Rank by P", (row) => row.likelihood_rank ?? Infinity],
  length: ["Length", (row) => -row.length],
  supporters: ["Votes for", (row) => -(row.supporters ?? 0)],
};

/**
 * @param {HTMLElement} container
 * @param {import("./answers").Election} election
 * @param {(index: number) => void} choose called with the candidate that the reader chooses
 */
export function showCandidates(container, election, choose) {
  const { total, rows } = election.candidates;
  const best = Math.max(...rows.map((row) => row.score ?? 0), 0);
  const lines = rows.map((row) => candidateRow(row, election, best));
  const body = make("tbody", { role: "rowgroup" }, ...lines);
  const headings = headingRow(election, rows, lines, body);
  const table = make("table", { id: "candidate-table", class: "numbers", role: "table" });
  table.setAttribute("aria-labelledby", "candidates-title");
  table.append(make("thead", { role: "rowgroup" }, headings), body);
  const note = faint("Choose a candidate by its rank to see where its score comes from.");
  if (total > rows.length) note.append(` The first ${grouped(rows.length)} of ${grouped(total)} by rank are listed.`);
  container.replaceChildren(note, make("div", { class: "scroll low" }, table));
  roving(body, choose);
}

/** @param {import("./answers").Election} election @param {import("./answers").Candidate[]} rows @param {HTMLElement[]} lines @param {HTMLElement} body */
function headingRow(election, rows, lines, body) {
  const headings = make("tr", { role: "row" });
  const cells = Object.entries(COLUMNS).map(([name, [label, by]]) => {
    const title = name === "length" ? `${label} (${election.length_in})` : label;
    const cell = make("th", { role: "columnheader", scope: "col" });
    cell.setAttribute("aria-sort", name === "rank" ? "ascending" : "none");
    cell.append(
      button(title, () => {
        const order = rows.map((row, i) => ({ key: by(row), rank: row.rank, line: lines[i] }));
        order.sort((a, b) => a.key - b.key || a.rank - b.rank);
        body.replaceChildren(...order.map((one) => one.line));
        for (const other of cells) other.setAttribute("aria-sort", other === cell ? "ascending" : "none");
      }),
    );
    return cell;
  });
  headings.append(cells[0], make("th", { role: "columnheader", scope: "col" }, "Candidate"), ...cells.slice(1));
  return headings;
}

/** @param {import("./answers").Candidate} row @param {import("./answers").Election} election @param {number} best */
function candidateRow(row, election, best) {
  const line = make("tr", { role: "row", "data-index": row.index });
  const rank = make("button", { type: "button", tabindex: -1, "aria-pressed": "false" }, String(row.rank));
  rank.setAttribute("aria-label", `Rank ${row.rank}: where its score comes from`);
  const text = cell("Candidate", "text", brief(row));
  for (const badge of badges(row, election)) text.append(" ", badge);
  const voters = election.voters.total;
  line.append(
    cell("Rank", "", rank),
    text,
    cell("Score", "", bar(row.score ?? 0, best), fixed(row.score)),
    cell("P", "", make("span", { title: row.logprob === null ? null : `log P = ${row.logprob}` }, probability(row))),
    cell("Rank by P", "", String(row.likelihood_rank ?? "–")),
    cell("Length", "", String(row.length)),
    cell("Votes for", "", row.supporters === null ? "–" : `${row.supporters} of ${voters}`),
  );
  if (row.index === election.winner) line.classList.add("winner");
  return line;
}

/** @param {string} label @param {string} name @param {...(Node | string)} children */
function cell(label, name, ...children) {
  return make("td", { role: "cell", "data-label": label, class: name || null }, ...children);
}

/**
 * What is special about a candidate.
 * @param {import("./answers").Candidate} row
 * @param {import("./answers").Election} election
 */
function badges(row, election) {
  const badges = [];
  const order = election.elected.indexOf(row.index);
  if (order === 0) badges.push(make("span", { class: "badge won" }, "winner"));
  if (order > 0) badges.push(make("span", { class: "badge won" }, `elected ${order + 1}.`));
  if (row.index === election.most_likely) badges.push(make("span", { class: "badge likely" }, "most likely"));
  if (!row.finished) badges.push(make("span", { class: "badge", title: "the model did not end it" }, "cut off"));
  return badges;
}

/**
 * A bar of a share of the largest.
 * @param {number} value
 * @param {number} largest
 */
export function bar(value, largest) {
  const inner = make("span", { class: value < 0 ? "negative" : null });
  inner.style.width = `${largest > 0 ? Math.min(100, (100 * Math.abs(value)) / largest) : 0}%`;
  return make("span", { class: "bar", "aria-hidden": "true" }, inner);
}

/**
 * One stop of the tab key for the whole table; arrows move, Home and End go to its ends.
 * @param {HTMLElement} body
 * @param {(index: number) => void} choose
 */
function roving(body, choose) {
  const buttons = () => Array.from(body.querySelectorAll("button"));
  /** @param {HTMLButtonElement | null} wanted */
  const current = (wanted) => {
    for (const one of buttons()) if (one.tabIndex === 0) one.tabIndex = -1;
    if (wanted) wanted.tabIndex = 0;
  };
  current(buttons()[0]);
  body.addEventListener("click", (event) => {
    const line = event.target instanceof Element ? event.target.closest("tr") : null;
    if (!line || String(getSelection())) return; // the reader marks text
    current(line.querySelector("button"));
    choose(Number(line.dataset.index));
  });
  body.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const all = buttons();
    const at = all.findIndex((one) => one === document.activeElement);
    /** @type {Record<string, number>} */
    const moves = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 };
    const to = moves[event.key];
    if (at < 0 || to === undefined || !all[to]) return;
    event.preventDefault();
    current(all[to]);
    all[to].focus();
  });
}

/**
 * Show which candidate is chosen.
 * @param {HTMLElement} container
 * @param {number} index
 */
export function markChosen(container, index) {
  for (const line of container.querySelectorAll("tr[data-index]")) {
    const chosen = line.getAttribute("data-index") === String(index);
    line.classList.toggle("chosen", chosen);
    line.querySelector("button")?.setAttribute("aria-pressed", String(chosen));
  }
}
