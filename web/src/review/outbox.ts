/** Decisions on their way to the server: one after another, so that each knows what it builds on. */

import { post } from "../api";
import type { Author, Decision, News } from "./model";

export class Outbox {
  private last: Promise<unknown> = Promise.resolve();
  /** How many decisions on each caption have no answer yet. */
  private readonly unanswered = new Map<number, number>();
  /** For each caption the change that its next decision builds on. */
  private readonly bases = new Map<number, number>();
  /** When a decision is refused, those that were made before that was known are void. */
  private epoch = 0;

  /** `take` is given every answer before the next decision goes out. */
  constructor(private readonly take: (news: News) => Promise<void>) {}

  buildOn(row: number, change: number): void {
    this.bases.set(row, change);
  }

  /** Whether the page knows better than the server what was decided on a caption. */
  waits(row: number): boolean {
    return this.unanswered.has(row);
  }

  /** Resolves when nothing is on its way. */
  async settled(): Promise<void> {
    await this.last;
  }

  /** Whether the decision was saved; rejects if it was refused, and is false if an earlier one was. */
  send(author: Author, row: number, decision: Decision): Promise<boolean> {
    const { epoch } = this;
    this.unanswered.set(row, (this.unanswered.get(row) ?? 0) + 1);
    const sent = this.last.then(async () => {
      if (epoch !== this.epoch) {
        this.answered(row);
        return false;
      }
      const base = this.bases.get(row) ?? 0;
      try {
        const news = await post<News>("/review/decide", { author, row, base, decision });
        this.answered(row);
        await this.take(news);
        return true;
      } catch (error) {
        this.answered(row);
        this.epoch += 1;
        throw error;
      }
    });
    this.last = sent.catch(() => undefined);
    return sent;
  }

  private answered(row: number): void {
    const left = (this.unanswered.get(row) ?? 1) - 1;
    if (left > 0) this.unanswered.set(row, left);
    else this.unanswered.delete(row);
  }
}
