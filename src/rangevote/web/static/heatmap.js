// The grades of all voters for all candidates as a picture: one pixel a cell, scaled up, and a cursor on top.

/** Room for titles, numbers and colours at the edges, in pixels of the page. */
const EDGE = { left: 58, top: 44 };
const STRIP = 5;
const CELL = { least: 5, most: 34 };
/** Room that the title of the columns takes. */
const TITLE = 120;

/**
 * @typedef {object} Grid
 * @property {number[][]} values rows are voters
 * @property {number} largest what full colour stands for
 * @property {string[]} rows labels
 * @property {string[]} columns labels
 * @property {{rows: (number | null)[], columns: (number | null)[]}} colours number of the colour of each
 */

/** A heat map in a canvas, with one cell that the arrow keys move. */
export class HeatMap {
  /**
   * @param {HTMLCanvasElement} canvas
   * @param {HTMLElement} box the element that the canvas may fill and scroll in
   * @param {{move: (row: number, column: number) => void, open: (row: number, column: number) => void}} react
   */
  constructor(canvas, box, react) {
    this.canvas = canvas;
    this.box = box;
    this.react = react;
    /** @type {Grid} */
    this.grid = { values: [], largest: 1, rows: [], columns: [], colours: { rows: [], columns: [] } };
    this.row = 0;
    this.column = 0;
    this.size = CELL.most;
    /** @type {HTMLCanvasElement | null} */
    this.picture = null;
    canvas.addEventListener("keydown", (event) => this.pressed(event));
    canvas.addEventListener("click", (event) => this.pointed(event, true));
    canvas.addEventListener("pointermove", (event) => this.pointed(event, false));
  }

  /** @param {Grid} grid */
  show(grid) {
    this.grid = grid;
    this.picture = painted(grid);
    this.fit();
  }

  /** Take the size that the box allows, and draw. */
  fit() {
    const { rows, columns } = this.grid;
    const across = (this.box.clientWidth - EDGE.left - 2) / Math.max(columns.length, 1);
    const down = (innerHeight * 0.7 - EDGE.top - 2) / Math.max(rows.length, 1);
    this.size = Math.max(CELL.least, Math.min(CELL.most, Math.floor(Math.min(across, down))));
    const width = EDGE.left + Math.max(TITLE, this.size * columns.length + 1);
    const height = EDGE.top + this.size * rows.length + 1;
    const dense = Math.min(devicePixelRatio || 1, 2);
    this.canvas.width = Math.round(width * dense);
    this.canvas.height = Math.round(height * dense);
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    this.dense = dense;
    this.draw();
  }

  draw() {
    const pen = this.canvas.getContext("2d");
    if (!pen || !this.picture || !this.picture.width || !this.picture.height) return;
    const { rows, columns } = this.grid;
    const { size } = this;
    pen.setTransform(this.dense || 1, 0, 0, this.dense || 1, 0, 0);
    pen.clearRect(0, 0, this.canvas.width, this.canvas.height);
    pen.imageSmoothingEnabled = false;
    pen.drawImage(this.picture, EDGE.left, EDGE.top, size * columns.length, size * rows.length);
    this.label(pen);
    pen.strokeStyle = colour("--ink");
    pen.lineWidth = 2;
    const [x, y] = [EDGE.left + this.column * size, EDGE.top + this.row * size];
    pen.strokeRect(x, y, size, size);
    pen.strokeStyle = colour("--ground");
    pen.lineWidth = 1;
    if (size > 8) pen.strokeRect(x + 1.5, y + 1.5, size - 3, size - 3); // seen on dark cells too
  }

  /**
   * Titles, numbers as many as fit, and the colours of clusters or members at the edges.
   * @param {CanvasRenderingContext2D} pen
   */
  label(pen) {
    const { colours } = this.grid;
    colours.columns.forEach((number, i) => {
      if (number === null) return;
      pen.fillStyle = colour(`--cluster-${number}`);
      pen.fillRect(EDGE.left + i * this.size, EDGE.top - STRIP - 1, this.size, STRIP);
    });
    colours.rows.forEach((number, i) => {
      if (number === null) return;
      pen.fillStyle = colour(`--cluster-${number}`);
      pen.fillRect(EDGE.left - STRIP - 1, EDGE.top + i * this.size, STRIP, this.size);
    });
    pen.fillStyle = colour("--faint");
    pen.font = "11px sans-serif";
    pen.textBaseline = "middle";
    const { size } = this;
    const every = Math.max(1, Math.ceil(24 / size));
    const often = Math.max(1, Math.ceil(14 / size));
    pen.textAlign = "left";
    pen.fillText("candidates, by rank →", EDGE.left, 10);
    pen.save();
    pen.translate(10, EDGE.top);
    pen.rotate(-Math.PI / 2);
    pen.textAlign = "right";
    pen.fillText("← voters", 0, 0);
    pen.restore();
    pen.textAlign = "center";
    this.grid.columns.forEach((name, i) => {
      if (i % every === 0) pen.fillText(name, EDGE.left + (i + 0.5) * size, EDGE.top - STRIP - 9);
    });
    pen.textAlign = "right";
    this.grid.rows.forEach((name, i) => {
      if (i % often === 0) pen.fillText(name, EDGE.left - STRIP - 5, EDGE.top + (i + 0.5) * size);
    });
  }

  /** @param {number} row @param {number} column */
  moveTo(row, column) {
    const { rows, columns } = this.grid;
    this.row = Math.max(0, Math.min(rows.length - 1, row));
    this.column = Math.max(0, Math.min(columns.length - 1, column));
    this.draw();
    this.react.move(this.row, this.column);
  }

  /** Bring the current cell into view inside the box. */
  reveal() {
    const { box, size } = this;
    const [x, y] = [EDGE.left + this.column * size, EDGE.top + this.row * size];
    if (x < box.scrollLeft + EDGE.left) box.scrollLeft = x - EDGE.left;
    if (x + size > box.scrollLeft + box.clientWidth) box.scrollLeft = x + size - box.clientWidth;
    if (y < box.scrollTop + EDGE.top) box.scrollTop = y - EDGE.top;
    if (y + size > box.scrollTop + box.clientHeight) box.scrollTop = y + size - box.clientHeight;
  }

  /** @param {KeyboardEvent} event */
  pressed(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const { row, column } = this;
    /** @type {Record<string, [number, number]>} */
    const moves = {
      ArrowUp: [row - 1, column],
      ArrowDown: [row + 1, column],
      ArrowLeft: [row, column - 1],
      ArrowRight: [row, column + 1],
      Home: [row, 0],
      End: [row, Infinity],
      PageUp: [0, column],
      PageDown: [Infinity, column],
    };
    if (event.key in moves) {
      this.moveTo(...moves[event.key]);
      this.reveal();
    } else if (event.key === "Enter" || event.key === " ") {
      this.react.open(row, column);
    } else return;
    event.preventDefault();
  }

  /** @param {MouseEvent} event @param {boolean} open */
  pointed(event, open) {
    const row = Math.floor((event.offsetY - EDGE.top) / this.size);
    const column = Math.floor((event.offsetX - EDGE.left) / this.size);
    if (row < 0 || column < 0 || row >= this.grid.rows.length || column >= this.grid.columns.length) return;
    if (row !== this.row || column !== this.column) this.moveTo(row, column);
    if (open) this.react.open(row, column);
  }
}

/**
 * The grid with one pixel a cell: the ground for 0, the accent for the largest, another colour below 0.
 * @param {Grid} grid
 */
function painted({ values, largest, rows, columns }) {
  const canvas = document.createElement("canvas");
  canvas.width = columns.length;
  canvas.height = rows.length;
  const pen = canvas.getContext("2d");
  if (!pen || !columns.length || !rows.length) return canvas;
  const image = pen.createImageData(columns.length, rows.length);
  const [ground, above, below] = ["--panel", "--accent", "--bad"].map((name) => channels(colour(name)));
  let at = 0;
  for (const row of values) {
    for (const value of row) {
      const share = largest > 0 ? Math.min(1, Math.abs(value) / largest) : 0;
      const full = value < 0 ? below : above;
      for (let i = 0; i < 3; i++) image.data[at + i] = ground[i] + (full[i] - ground[i]) * share;
      image.data[at + 3] = 255;
      at += 4;
    }
  }
  pen.putImageData(image, 0, 0);
  return canvas;
}

/**
 * A colour of the style sheet, as "#rrggbb".
 * @param {string} name
 */
export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** @param {string} hex */
function channels(hex) {
  return [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
}
