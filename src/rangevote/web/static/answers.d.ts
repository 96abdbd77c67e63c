// What the server answers, for the type checker alone: no page loads this file. `web/page_data.py` describes it.

/** api/election */
export interface About {
  version: string;
  lists: { name: string; ballots: number }[];
  ballots: number;
  kept: number;
  page: number;
  measure: string;
}

/** api/ballots?page=P */
export interface BallotPage {
  page: number;
  pages: number;
  total: number;
  ballots: { number: number; id: string | number | null; title: string; candidates: number }[];
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
  probability: number | null;
  score: number | null;
  rank: number;
  likelihood_rank: number | null;
  length: number;
  supporters: number | null;
  finished: boolean;
}

/** Without its text where the candidates vote. */
export interface Voter extends Partial<Text> {
  index: number;
  weight: number;
}

export interface Measure {
  name: string;
  orders: number[];
  bag: boolean;
  short: boolean;
  unit: string;
  lowest: number;
}

/** Votes of answers, where they are compared. */
export interface Answers {
  answer: string | null;
  votes: Record<string, { count: number; share: number }>;
  abstained: number;
  entropy: number;
}

/** api/ballots/N?list=L */
export interface Election {
  ballot: { number: number; id: string | number | null; source: string | null; references: string[] };
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
  measure: Measure;
  length_in: string;
  candidates: { total: number; rows: Candidate[] };
  voters: { total: number; same: boolean; rows: Voter[] };
}

/** api/ballots/N/grades?list=L */
export interface Grades {
  voters: number[];
  candidates: number[];
  grades: number[][];
}

/** What is not listed. */
export interface Rest {
  count: number;
  score: number;
}

/** api/ballots/N/candidates/C?list=L; only the first three where nobody votes */
export interface Parts {
  index: number;
  score: number;
  ngrams: [text: string, order: number, score: number][] | null;
  ngrams_rest: Rest;
  votes: [voter: number, weight: number, grade: number, score: number][];
  votes_rest: Rest;
  fields: [path: string, value: string, agree: number, of: number, share: number][] | null;
}

/** A measure's winner, or why it was not counted. */
export interface Won {
  measure: string;
  why?: string;
  winner: number;
  text: string;
  score: number | null;
  margin: number | null;
  near_tie: boolean;
  signature: string;
}

/** api/ballots/N/winners?list=L */
export interface Winners {
  name: string;
  candidates: number;
  voters: number;
  measures: Won[];
}

/** api/ballots/N/stability?list=L */
export interface Stability {
  voters: number;
  tried: number;
  same: number;
  changes: { voter: number; weight: number; winner: number; margin: number | null }[];
  smallest_margin: number | null;
  why: string | null;
}
