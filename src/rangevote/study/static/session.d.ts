// What the server answers, for the type checker alone: no page loads this file. `study/app.py` gives it.

/** From -2, left is much better, to 2, right is; or that one cannot judge. */
export type Answer = number | "cannot";

/** An item, as far as the browser may know it. */
export interface Item {
  id: string;
  left: string;
  right: string;
  source?: string;
  image?: string;
}

/** /api/session */
export interface Session {
  study: string;
  opened: string;
  annotator: string;
  title: string;
  question: string;
  instructions: string;
  scale: string[];
  differences: boolean;
  practice: Item;
  items: Item[];
  judged: [id: string, value: Answer, comment: string | null][];
  finished: boolean;
  code: string | null;
}

/** /api/judgement and /api/undo: what counts now, and what it replaces; null is no answer. */
export interface Saved {
  value: Answer | null;
  replaced: Answer | null;
}

/** /api/progress; times are of the server. */
export interface Progress {
  title: string;
  time: string;
  people: {
    name: string;
    assigned: number;
    judged: number;
    cannot: number;
    comments: number;
    seconds: number | null;
    opened: string | null;
    last: string | null;
    finished: boolean;
  }[];
}
