// What the server answers, for the type checker alone: no page loads this file. `study/app.py` gives it.

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
  items: Item[];
  judged: [id: string, value: number][];
  finished: boolean;
}

/** /api/judgement and /api/undo: what counts now, and what it replaces; null is no answer. */
export interface Saved {
  value: number | null;
  replaced: number | null;
}
