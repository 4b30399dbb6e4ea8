/** What the review server tells. */

import type { Operation } from "../edit";

export type Standing = "open" | "partial" | "skipped" | "accepted" | "rejected" | "mixed" | "retyped";

export interface Decision {
  /** A sign for each unit: + accepted, - rejected, ? not decided. */
  units: string;
  text: string | null;
  settled: boolean;
  skipped: boolean;
  flagged: boolean;
  note: string;
}

export interface State {
  row: number;
  change: number;
  decision: Decision;
  standing: Standing;
  by: string | null;
  time: string | null;
  caption: string;
}

export interface Unit {
  operations: number[];
  name: string;
  deleted: string | null;
  added: string | null;
  probability: number | null;
}

export interface Item {
  row: number;
  id: string | number;
  place: string;
  image: string | null;
  original: string;
  refined: string;
  operations: Operation[];
  units: Unit[];
  confidence: number | null;
  fits: number | null;
  status: "kept" | "changed" | "held" | "failed";
  reason: string | null;
  model: string;
  state: State;
}

export interface Line {
  row: number;
  /** As it is decided, or else as the editor would have it. */
  caption: string;
  confidence: number | null;
  standing: Standing;
  flagged: boolean;
}

export interface Kind {
  deleted: string | null;
  added: string | null;
  count: number;
}

export interface Query {
  search: string;
  about: string;
  progress: string;
  min_confidence: number;
  max_confidence: number;
  min_words: number;
  max_words: number | null;
  sort: string;
}

export interface News {
  sequence: number;
  states: State[];
  stale: boolean;
  counts: Record<string, number>;
  proposals_decided: number;
  pace: number;
  team_pace: number;
  undo: number;
  redo: number;
  present: { name: string; row: number | null }[];
}

export interface Turn {
  rows: number[];
  count: number;
  label: string;
  told: News;
}

export interface About {
  name: string;
  total: number;
  proposals: number;
  model: string;
  format: string;
  formats: string[];
  version: string;
  journal: string;
  reviewer: string;
}

export interface Bulk {
  items: number;
  units: number;
  decided_before: number;
  samples: { row: number; original: string; caption: string; probability: number | null }[];
  told: News | null;
}

export interface Author {
  id: string;
  name: string;
}

export const ALL: Query = {
  search: "", about: "proposals", progress: "all", min_confidence: 0, max_confidence: 1, min_words: 0, max_words: null,
  sort: "doubtful",
};

const TO_DO: ReadonlySet<Standing> = new Set(["open", "partial"]);

export const isToDo = (standing: Standing): boolean => TO_DO.has(standing);

/** As the server would call it; for the moment until it does. */
export function standingOf(decision: Decision): Standing {
  if (decision.text !== null) return "retyped";
  const made = decision.units.replaceAll("?", "");
  if (made.length === decision.units.length && (made || decision.settled)) {
    return !made.includes("-") ? "accepted" : made.includes("+") ? "mixed" : "rejected";
  }
  return made ? "partial" : decision.skipped ? "skipped" : "open";
}

export function kindName(kind: { deleted: string | null; added: string | null }): string {
  if (kind.deleted !== null && kind.added !== null) return `${kind.deleted} → ${kind.added}`;
  return kind.deleted !== null ? `− ${kind.deleted}` : `+ ${kind.added}`;
}

/** The search that finds a kind of edit. */
export function kindSearch(kind: { deleted: string | null; added: string | null }): string {
  if (kind.deleted !== null && kind.added !== null) return `${kind.deleted} -> ${kind.added}`;
  return kind.deleted !== null ? `-${kind.deleted}` : `+${kind.added}`;
}
