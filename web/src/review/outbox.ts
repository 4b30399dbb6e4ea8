/** Decisions on their way to the server: one after another, so that each knows what it builds on. */

import { post } from "../api";
import type { Author, Decision, News, State } from "./model";

export class Outbox {
  private last: Promise<unknown> = Promise.resolve();
  /** For each caption the decisions that have no answer yet. */
  private readonly unanswered = new Map<number, Set<Decision>>();
  /** Each caption as the server has told of it: what its next decision builds on. */
  private readonly told = new Map<number, State>();

  /** `take` is given every answer, and `refused` every refusal, before the next decision goes out. */
  constructor(
    private readonly take: (news: News) => Promise<void>,
    private readonly refused: (row: number, error: unknown) => Promise<void>,
  ) {}

  buildOn(state: State): void {
    this.told.set(state.row, state);
  }

  /** What the next decision on a caption builds on. */
  base(row: number): State | undefined {
    return this.told.get(row);
  }

  /** Whether the page knows better than the server what was decided on a caption. */
  waits(row: number): boolean {
    return this.unanswered.has(row);
  }

  /** What was decided on a caption and has no answer yet is void. */
  forget(row: number): void {
    this.unanswered.get(row)?.clear();
    this.unanswered.delete(row);
  }

  /** Resolves when nothing is on its way. */
  async settled(): Promise<void> {
    await this.last;
  }

  /** Whether the decision on a caption was saved. */
  send(author: Author, row: number, decision: Decision): Promise<boolean> {
    const waiting = this.unanswered.get(row) ?? new Set();
    this.unanswered.set(row, waiting.add(decision));
    const sent = this.last.then(async () => {
      if (!waiting.has(decision)) return false;
      let news: News;
      try {
        news = await post<News>("/review/decide", { author, row, base: this.base(row)?.change ?? 0, decision });
      } catch (error) {
        await this.refused(row, error);
        return false;
      }
      waiting.delete(decision);
      if (!waiting.size) this.unanswered.delete(row);
      await this.take(news);
      return true;
    });
    this.last = sent.catch(() => undefined);
    return sent;
  }
}
