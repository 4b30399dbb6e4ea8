/** Edits as the service tells them. */

export type Op = "KEEP" | "DELETE" | "ADD";

export interface Operation {
  op: Op;
  token: string;
  probability: number | null;
  round?: number;
}

export interface Edit {
  source: string;
  caption: string;
  changed: boolean;
  operations: Operation[];
  rounds: number;
  steps: number;
  confidence: number;
  fits: number | null;
  model: string;
  trace: { source: string[]; rounds: Operation[][] };
  image_id: string;
}

export interface Row {
  label: string;
  operations: Operation[];
}

/** The original, every round, and the refined caption: the rows of the figure. */
export function rowsOf(edit: Edit): Row[] {
  const rounds = edit.trace.rounds;
  const last = rounds.at(-1)?.filter((operation) => operation.op !== "DELETE") ?? [];
  const target = rounds.length ? last.map((operation) => operation.token) : edit.trace.source;
  return [
    { label: "original", operations: kept(edit.trace.source) },
    ...rounds.map((operations, number) => ({ label: labelOf(operations, number), operations })),
    { label: "refined", operations: kept(target) },
  ];
}

function kept(tokens: string[]): Operation[] {
  return tokens.map((token) => ({ op: "KEEP", token, probability: null }));
}

function labelOf(operations: Operation[], number: number): string {
  const adds = operations.some((operation) => operation.op === "ADD");
  const deletes = operations.some((operation) => operation.op === "DELETE");
  if (!adds && (number === 0 || deletes)) return number === 0 ? "delete" : `${number} · delete`;
  return deletes ? `${number} · revise` : `${number} · add`;
}

const SAID: Record<Op, string> = { KEEP: "kept", DELETE: "deleted", ADD: "added" };

/** An operation in words: "dog, deleted, 93%". */
export function spoken(operation: Operation): string {
  const sure = operation.probability === null ? "" : `, ${Math.round(100 * operation.probability)}%`;
  return `${operation.token}, ${SAID[operation.op]}${sure}`;
}
