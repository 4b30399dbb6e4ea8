/** Where the page is, kept in its address: reloading, or sending the address to someone, leads back. */

import { ALL, type Query } from "./model";

export function readAddress(): { query: Query; row: number | undefined } {
  const kept = new URLSearchParams(location.hash.slice(1));
  const row = kept.get("row");
  try {
    const query = { ...ALL, ...(JSON.parse(kept.get("query") ?? "{}") as Partial<Query>) };
    return { query, row: row === null ? undefined : Number(row) };
  } catch {
    return { query: ALL, row: undefined };
  }
}

export function writeAddress(query: Query, row: number | undefined): void {
  const differs = Object.entries(query).filter(([key, value]) => value !== ALL[key as keyof Query]);
  const kept = new URLSearchParams();
  if (differs.length) kept.set("query", JSON.stringify(Object.fromEntries(differs)));
  if (row !== undefined) kept.set("row", String(row));
  history.replaceState(null, "", `#${kept}`);
}
