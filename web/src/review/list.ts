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
  /** The captions that are on their way, and what has become of them meanwhile. */
  private readonly asked = new Map<number, Promise<void>>();
  private readonly overtaken = new Map<number, Partial<Line>>();
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
    this.overtaken.clear();
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
    else if (this.asked.has(row)) this.overtaken.set(row, change);
    const at = this.places.get(row);
    if (at !== undefined) this.redraw(at);
  }

  /** What is known of the captions at some places, asked for if need be. */
  async known(from: number, to: number): Promise<Line[]> {
    const rows = this.rows.slice(from, to);
    while (!rows.every((row) => this.lines.has(row))) await this.fetch(rows); // again if all was forgotten meanwhile
    return rows.flatMap((row) => this.lines.get(row) ?? []);
  }

  private async fetch(rows: number[]): Promise<void> {
    const wanted = rows.filter((row) => !this.lines.has(row) && !this.asked.has(row));
    for (let start = 0; start < wanted.length; start += PAGE) {
      const page = wanted.slice(start, start + PAGE);
      const coming = this.ask(page);
      for (const row of page) this.asked.set(row, coming);
    }
    await Promise.all(new Set(rows.map((row) => this.asked.get(row))));
  }

  private async ask(rows: number[]): Promise<void> {
    const { generation } = this;
    try {
      const lines = await post<Line[]>("/review/rows", { rows });
      if (generation !== this.generation) return;
      for (const line of lines) {
        this.lines.set(line.row, { ...line, ...this.overtaken.get(line.row) });
        const at = this.places.get(line.row);
        if (at !== undefined) this.redraw(at);
      }
    } finally {
      if (generation === this.generation) {
        for (const row of rows) {
          this.asked.delete(row);
          this.overtaken.delete(row);
        }
      }
    }
  }

  private clear(): void {
    for (const at of [...this.shown.keys()]) this.drop(at);
    this.draw();
  }

  private redraw(at: number): void {
    this.drop(at);
    this.draw();
  }

  /** Nobody is pointed to a line that is not there, not even for a moment. */
  private drop(at: number): void {
    const element = this.shown.get(at);
    if (element && this.port.getAttribute("aria-activedescendant") === element.id) {
      this.port.removeAttribute("aria-activedescendant");
    }
    element?.remove();
    this.shown.delete(at);
  }

  private render(): void {
    const { scrollTop, clientHeight } = this.port;
    const first = Math.max(0, Math.floor(scrollTop / HEIGHT) - AROUND);
    const last = Math.min(this.rows.length, Math.ceil((scrollTop + clientHeight) / HEIGHT) + AROUND);
    for (const at of [...this.shown.keys()]) {
      if (at < first || at >= last) this.drop(at);
    }
    let next: HTMLElement | null = null;
    for (let at = last - 1; at >= first; at--) {
      next = this.shown.get(at) ?? this.insert(at, next);
    }
    const chosen = this.shown.get(this.at);
    if (chosen) this.port.setAttribute("aria-activedescendant", chosen.id);
    else this.port.removeAttribute("aria-activedescendant");
    void this.fetch(this.rows.slice(first, last)).catch(() => undefined); // scrolling on asks again
  }

  /** Lines stand in the document in their order: some people hear it. */
  private insert(at: number, before: HTMLElement | null): HTMLElement {
    const element = this.line(at);
    element.style.setProperty("transform", `translateY(${at * HEIGHT}px)`);
    this.shown.set(at, element);
    this.canvas.insertBefore(element, before);
    return element;
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
      h("span", { class: "entry-text" }, line ? line.caption : "…"),
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
