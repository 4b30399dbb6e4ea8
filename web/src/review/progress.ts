/** How far the review has come, how fast it goes, and who is here. */

import { h, show } from "../dom";
import type { News } from "./model";

export class Progress {
  private readonly bar = h("progress", { max: 1, value: 0, "aria-label": "Edits decided" });
  private readonly tally = h("span", { class: "tally" });
  readonly element = h("div", { class: "standing" }, this.bar, this.tally);
  readonly people = h("span", { class: "people" });

  show(news: News, total: number): void {
    const done = news.proposals_decided;
    this.bar.max = Math.max(1, total);
    this.bar.value = done;
    const left = total - done;
    const pace = news.team_pace;
    const rest = pace > 0 && left > 0 ? ` · ${pace.toFixed(pace < 10 ? 1 : 0)}/min · ${duration(left / pace)} left` : "";
    this.tally.textContent = `${done.toLocaleString("en")} of ${total.toLocaleString("en")} decided${rest}`;
    show(this.people, news.present.slice(0, 5).map(person));
  }

  silence(): void {
    this.tally.textContent = "the server does not answer";
  }
}

function person(one: News["present"][number]): HTMLElement {
  const place = one.row === null ? one.name : `${one.name} is at #${one.row}`;
  return h("span", { class: "person", title: place }, h("span", { "aria-hidden": "true" }, one.name.slice(0, 2)), h("span", { class: "visually-hidden" }, `${place === one.name ? `${one.name} is here` : place}`));
}

function duration(minutes: number): string {
  if (minutes < 60) return `${Math.max(1, Math.round(minutes))} min`;
  return minutes < 48 * 60 ? `${Math.round(minutes / 60)} h` : `${Math.round(minutes / 1440)} days`;
}
