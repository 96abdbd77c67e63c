// What the server answers, for the type checker alone: no page loads this file. `web/api.py` has the same fields.

/** api/election */
export interface About {
  version: string;
  lists: { name: string; ballots: number }[];
  ballots: number;
  kept: number;
  page: number;
  measure: string;
  measures: string[];
  members: string[];
}

/** A ballot in the list api/ballots?page=P; what is not known is null. */
export interface Listed {
  number: number;
  id: string | number | null;
  title: string;
  winner: string | null;
  member: string | null;
  no_winner: string | null;
  likely: string | null;
  changed: boolean | null;
  margin: number | null;
  near_tie: boolean | null;
  tried: number | null;
  same: number | null;
  gain: number | null;
  error: string | null;
}

/** A text, cut after so many characters; `more` were cut. */
export interface Text {
  index: number;
  text: string;
  more: number;
  units: string[] | null;
}

export interface Candidate extends Text {
  logprob: number | null;
  share: number | null;
  score: number | null;
  rank: number;
  likelihood_rank: number | null;
  length: number;
  supporters: number | null;
  finished: boolean;
  member: string | null;
}

/** Without its text where the candidates vote. */
export interface Voter extends Partial<Text> {
  index: number;
  weight: number;
  member: string | null;
}

export interface PageMeasure {
  name: string;
  orders: number[];
  bag: boolean;
  short: boolean;
  unit: string;
}

/** Votes of answers, where they are compared. */
export interface Answers {
  answer: string | null;
  votes: Record<string, { count: number; share: number }>;
  abstained: number;
  entropy: number;
}

/** Candidates that the measure cannot tell apart, best first. */
export interface Group {
  candidates: number[];
  share: number | null;
  answer: string | null;
}

/** The election without single voters. */
export interface Stability {
  voters: number;
  tried: number;
  same: number;
  changes: { voter: number; weight: number; winner: number; margin: number | null }[];
  smallest_margin: number | null;
  why: string | null;
}

/** What rule="merge" made of the candidates: JSON, the share of each field by its path, the paths without a majority. */
export interface MergedObject {
  text: string;
  shares: Record<string, number>;
  left_out: string[];
  equal: number | null;
}

/** api/ballots/N?list=L */
export interface Election {
  ballot: { number: number; id: string | number | null; source: string | null; references: string[]; image: string | null };
  signature: string;
  rule: string;
  winner: number;
  elected: number[];
  most_likely: number | null;
  score: number | null;
  margin: number | null;
  near_tie: boolean;
  no_support: boolean;
  no_winner: string | null;
  answers: Answers | null;
  merged: MergedObject | null;
  why: [text: string, quoted: boolean][];
  groups: Group[];
  stability: Stability;
  quality: { metric: string; winner: number; most_likely: number | null } | null;
  settings: { temperature: number; likelihood: number; weights: string; known: boolean };
  before: { winner: number; ranks: Record<string, number> } | null;
  shares: Record<string, number> | null;
  measure: PageMeasure;
  length_in: string;
  candidates: { total: number; rows: Candidate[] };
  voters: { total: number; same: boolean; rows: Voter[] };
}

/** api/ballots/N/grades?list=L */
export interface Grades {
  voters: number[];
  candidates: number[];
  grades: number[][];
  clusters: { name: string; members: number[] }[];
  by_cluster: { voters: number[]; candidates: number[] };
}

/** Columns, a row for each n-gram of a candidate: where it stands among the units of its text, what it earned. */
export interface NgramColumns {
  begin: number[];
  size: number[];
  order: number[];
  score: number[];
}

/** api/ballots/N/candidates/C?list=L */
export interface Parts {
  index: number;
  fields: [path: string, value: string, agree: number, of: number, share: number][] | null;
  score: number | null;
  likelihood: number | null;
  earned: NgramColumns | null;
  votes: [voter: number, weight: number, grade: number][];
  votes_rest: { count: number; score: number };
}

/** A measure's winner, or why it was not counted. */
export interface Won {
  measure: string;
  why?: string;
  winner: number;
  text: string;
  margin: number | null;
  near_tie: boolean;
  signature: string;
}

/** api/ballots/N/winners?list=L */
export interface MeasureWinners {
  candidates: number;
  measures: Won[];
}

/** What a member did over the ballots of a list; evaluation/panel_report.py explains the fields. */
export interface MemberSummary {
  name: string;
  outputs: number;
  ballots: number;
  wins: number;
  share: number | null;
  agreement: number | null;
  interval: [low: number, high: number] | null;
  agreement_share: number | null;
  twins: string[];
  accuracy: number | null;
  accuracy_interval: [low: number, high: number] | null;
  changed: number | null;
  accuracy_without: number | null;
}

/** api/members?list=L */
export interface PanelSummary {
  ballots: number;
  total: number;
  elected: number;
  measure: string;
  answers: boolean;
  members: MemberSummary[];
  matrix: (number | null)[][];
  accuracy: number | null;
  accuracy_interval: [low: number, high: number] | null;
  accuracy_by_agreement: number | null;
}

declare global {
  /** Known to browsers since 2023, not yet to every type checker. */
  var DecompressionStream: new (format: string) => ReadableWritablePair<Uint8Array, Uint8Array>;
}
