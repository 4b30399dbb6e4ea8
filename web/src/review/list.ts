/** The list of captions. However long it is, only the lines on the screen exist. */

import { post } from "../api";
import { h, icon, percent, perFrame } from "../dom";
import type { Line, Standing } from "./model";

const HEIGHT = 58;
const PAGE = 100;
const AROUND = 6;

const ICONS: Record<Standing, Parameters<typeof icon>[0] | null> = {
  open: null, partial: "list", skipped: "skip", accepted: "check", rejected: "cross", mixed: "check", retyped: "pen",
};

export class CaptionList {
  readonly element: HTMLElement;
  private readonly port: HTMLElement;
  private readonly canvas: HTMLElement;
  private rows: number[] = [];
  private places = new Map<number, number>();
  private at = -1;
  private readonly lines = new Map<number, Line>();
  private readonly asked = new Set<number>();
  private readonly shown = new Map<number, HTMLElement>();
  private generation = 0;
  private readonly draw = perFrame(() => this.render());

  constructor(private readonly onopen: (at: number) => void) {
    this.canvas = h("div", { class: "canvas", role: "presentation" });
    this.port = h(
      "div",
      {
        class: "port", role: "listbox", tabIndex: 0, "aria-label": "Captions", id: "list",
        onscroll: () => this.draw(),
      },
      this.canvas,
    );
    this.element = this.port;
    new ResizeObserver(() => this.draw()).observe(this.port);
  }

  get length(): number {
    return this.rows.length;
  }

  row(at: number): number | undefined {
    return this.rows[at];
  }

  place(row: number): number | undefined {
    return this.places.get(row);
  }

  /** Another order; what is known of the captions stays known. */
  set(rows: number[]): void {
    this.rows = rows;
    this.places = new Map(rows.map((row, at) => [row, at]));
    this.canvas.style.setProperty("height", `${rows.length * HEIGHT}px`);
    this.port.scrollTop = 0;
    this.at = -1;
    this.clear();
  }

  /** Forget what is known of the captions: too much has changed. */
  forget(): void {
    this.generation += 1;
    this.lines.clear();
    this.asked.clear();
    this.clear();
  }

  select(at: number): void {
    const before = this.at;
    this.at = at;
    for (const place of [before, at]) this.redraw(place);
    const top = at * HEIGHT;
    const { scrollTop, clientHeight } = this.port;
    if (clientHeight && (top < scrollTop || top + HEIGHT > scrollTop + clientHeight)) {
      this.port.scrollTop = Math.max(0, top - clientHeight / 3);
    }
    this.draw();
  }

  update(row: number, change: Partial<Line>): void {
    const line = this.lines.get(row);
    if (line) Object.assign(line, change);
    const at = this.places.get(row);
    if (at !== undefined) this.redraw(at);
  }

  /** What is known of the captions at some places, asked for if need be. */
  async known(from: number, to: number): Promise<(Line | undefined)[]> {
    await this.fetch(from, to);
    return this.rows.slice(from, to).map((row) => this.lines.get(row));
  }

  private async fetch(from: number, to: number): Promise<void> {
    const wanted = this.rows.slice(Math.max(0, from), to).filter((row) => !this.lines.has(row) && !this.asked.has(row));
    if (!wanted.length) return;
    const generation = this.generation;
    for (const row of wanted) this.asked.add(row);
    try {
      for (let start = 0; start < wanted.length; start += PAGE) {
        const lines = await post<Line[]>("/review/rows", { rows: wanted.slice(start, start + PAGE) });
        if (generation !== this.generation) return;
        for (const line of lines) {
          this.lines.set(line.row, line);
          const at = this.places.get(line.row);
          if (at !== undefined) this.redraw(at);
        }
      }
    } finally {
      for (const row of wanted) this.asked.delete(row);
    }
  }

  private clear(): void {
    for (const element of this.shown.values()) element.remove();
    this.shown.clear();
    this.draw();
  }

  private redraw(at: number): void {
    this.shown.get(at)?.remove();
    this.shown.delete(at);
    this.draw();
  }

  private render(): void {
    const { scrollTop, clientHeight } = this.port;
    const first = Math.max(0, Math.floor(scrollTop / HEIGHT) - AROUND);
    const last = Math.min(this.rows.length, Math.ceil((scrollTop + clientHeight) / HEIGHT) + AROUND);
    for (const [at, element] of this.shown) {
      if (at < first || at >= last) {
        element.remove();
        this.shown.delete(at);
      }
    }
    for (let at = first; at < last; at++) {
      if (this.shown.has(at)) continue;
      const element = this.line(at);
      element.style.setProperty("transform", `translateY(${at * HEIGHT}px)`);
      this.shown.set(at, element);
      this.canvas.append(element);
    }
    const chosen = this.shown.get(this.at);
    if (chosen) this.port.setAttribute("aria-activedescendant", chosen.id);
    else this.port.removeAttribute("aria-activedescendant");
    void this.fetch(first, last).catch(() => undefined); // scrolling on asks again
  }

  private line(at: number): HTMLElement {
    const row = this.rows[at] ?? -1;
    const line = this.lines.get(row);
    const chosen = at === this.at;
    const standing = line?.standing ?? "open";
    const name = ICONS[standing];
    return h(
      "div",
      {
        class: `entry ${standing}${chosen ? " chosen" : ""}`, role: "option", id: `entry-${at}`,
        "aria-selected": String(chosen), "aria-posinset": String(at + 1), "aria-setsize": String(this.rows.length),
        onclick: () => this.onopen(at),
      },
      h("span", { class: "entry-icon" }, name ? icon(name) : null),
      h("span", { class: "entry-text" }, line ? line.refined : "…"),
      h(
        "span",
        { class: "entry-facts" },
        h("span", {}, line ? (standing === "open" ? `#${row}` : `#${row} · ${standing}`) : `#${row}`),
        line?.flagged ? h("span", { class: "flagged" }, icon("flag"), h("span", { class: "visually-hidden" }, "flagged")) : null,
        h("span", { class: "entry-sure" }, percent(line?.confidence)),
      ),
    );
  }
}
