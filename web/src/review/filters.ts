/** Which captions to see. */

import { h, icon, show } from "../dom";
import { ALL, kindName, kindSearch, type Kind, type Query } from "./model";

const ABOUT = { proposals: "edits", changed: "changed", held: "held back", unchanged: "left alone", failed: "failed", all: "all captions" };
const PROGRESS = {
  all: "any state", todo: "to do", decided: "decided", accepted: "accepted", rejected: "rejected", mixed: "mixed",
  retyped: "retyped", skipped: "skipped", flagged: "flagged",
};
const SORT = { doubtful: "least sure first", confident: "surest first", changes: "most edits first", dataset: "in order" };

export class Filters {
  readonly element: HTMLElement;
  readonly search = h("input", {
    type: "search", id: "search", placeholder: "word, -dog, +cat, dog -> cat", "aria-label": "Search captions and edits",
    oninput: () => this.later(),
  });
  private readonly about = this.select("Captions", "about", ABOUT);
  private readonly progress = this.select("State", "progress", PROGRESS);
  private readonly sort = this.select("Order", "sort", SORT);
  private readonly minConfidence = this.number("Confidence from", 0, 100, "%");
  private readonly maxConfidence = this.number("Confidence to", 0, 100, "%");
  private readonly minWords = this.number("Words from", 0, 1000, "");
  private readonly maxWords = this.number("Words to", 0, 1000, "");
  private readonly kinds = h("div", { class: "kinds" });
  private timer = 0;

  /** `ondone` is called when Enter ends the search. */
  constructor(private readonly onchange: () => void, ondone: () => void) {
    const pair = (label: string, from: HTMLInputElement, to: HTMLInputElement, unit: string): HTMLElement =>
      h("div", { class: "range" }, h("span", {}, label), from, h("span", { class: "quiet" }, "to"), to, unit);
    this.search.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.isComposing) return;
      event.preventDefault();
      clearTimeout(this.timer);
      this.onchange();
      ondone();
    });
    this.element = h(
      "form",
      { class: "filters", role: "search", onsubmit: (event: Event) => event.preventDefault() },
      this.search,
      h("div", { class: "selects" }, this.about, this.progress, this.sort),
      h(
        "details",
        { class: "more" },
        h("summary", {}, "More filters, frequent edits"),
        pair("Confidence", this.minConfidence, this.maxConfidence, "%"),
        pair("Words", this.minWords, this.maxWords, ""),
        h("h2", {}, "Frequent edits here"),
        this.kinds,
        h("button", { type: "button", class: "ghost", onclick: () => this.put(ALL, true) }, icon("reset"), "Clear all filters"),
      ),
    );
  }

  query(): Query {
    const share = (input: HTMLInputElement, otherwise: number): number =>
      input.value === "" ? otherwise : Math.min(100, Math.max(0, Number(input.value))) / 100;
    return {
      search: this.search.value.trim(),
      about: this.about.value,
      progress: this.progress.value,
      sort: this.sort.value,
      min_confidence: share(this.minConfidence, 0),
      max_confidence: share(this.maxConfidence, 1),
      min_words: this.minWords.value === "" ? 0 : Math.max(0, Math.round(Number(this.minWords.value))),
      max_words: this.maxWords.value === "" ? null : Math.max(0, Math.round(Number(this.maxWords.value))),
    };
  }

  put(query: Query, tell = false): void {
    const shown = (value: number | null, none: number | null): string => (value === null || value === none ? "" : String(Math.round(100 * value)));
    this.search.value = query.search;
    this.about.value = query.about;
    this.progress.value = query.progress;
    this.sort.value = query.sort;
    this.minConfidence.value = shown(query.min_confidence, 0);
    this.maxConfidence.value = shown(query.max_confidence, 1);
    this.minWords.value = query.min_words ? String(query.min_words) : "";
    this.maxWords.value = query.max_words === null ? "" : String(query.max_words);
    if (tell) this.onchange();
  }

  showKinds(kinds: Kind[]): void {
    show(
      this.kinds,
      kinds.slice(0, 24).map((kind) =>
        h(
          "button",
          {
            type: "button", class: "kind",
            onclick: () => {
              this.search.value = kindSearch(kind);
              this.onchange();
            },
          },
          kindName(kind),
          h("span", { class: "quiet" }, kind.count.toLocaleString("en")),
        ),
      ),
      kinds.length ? null : h("p", { class: "quiet" }, "none"),
    );
  }

  private later(): void {
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.onchange(), 200);
  }

  private select(label: string, id: string, options: Record<string, string>): HTMLSelectElement {
    return h(
      "select",
      { id: `filter-${id}`, "aria-label": label, onchange: () => this.onchange() },
      Object.entries(options).map(([value, text]) => h("option", { value }, text)),
    );
  }

  private number(label: string, min: number, max: number, unit: string): HTMLInputElement {
    return h("input", {
      type: "number", min: String(min), max: String(max), "aria-label": unit ? `${label}, percent` : label,
      oninput: () => this.later(),
    });
  }
}
