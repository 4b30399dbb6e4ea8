/** One caption on the desk: its picture, what the editor would do, and what the reviewer makes of it. */

import { h, icon, percent, show } from "../dom";
import { kindName, type Decision, type Item, type Unit } from "./model";

export interface Actions {
  /** Do something with this card, after all that was asked for before. */
  act: (run: () => void | Promise<void>) => void;
  decide: (decision: Decision, onward: boolean) => Promise<void>;
  /** Say that the text field opened or closed. */
  typing: (open: boolean) => void;
}

const SAID: Record<string, string> = { "+": "accepted", "-": "rejected", "?": "not decided" };

export class Card {
  readonly element = h("article", { class: "desk", "aria-label": "Caption under review", tabIndex: -1 });
  private item: Item | null = null;
  private unitAt = 0;
  private readonly picture = h("div", { class: "picture" });
  private readonly body = h("div", { class: "body" });
  private field: HTMLTextAreaElement | null = null;
  private said = h("p", { class: "visually-hidden", "aria-live": "polite" });

  constructor(private readonly actions: Actions) {
    this.element.append(this.picture, this.body, this.said);
  }

  get current(): Item | null {
    return this.item;
  }

  open(item: Item): void {
    this.item = item;
    this.unitAt = Math.max(0, item.state.decision.units.indexOf("?"));
    this.field = null;
    this.drawPicture();
    this.draw();
  }

  /** The same caption after a decision. */
  refresh(item: Item): void {
    const typed = this.field?.value;
    this.item = item;
    this.draw();
    if (typed !== undefined) this.retype(typed);
  }

  nothing(words: string): void {
    this.item = null;
    show(this.picture);
    show(this.body, h("p", { class: "nothing quiet" }, words));
  }

  say(words: string): void {
    this.said.textContent = words;
  }

  async accept(): Promise<void> {
    await this.verdict("+");
  }

  async reject(): Promise<void> {
    if (this.item?.units.length) await this.verdict("-");
  }

  async skip(): Promise<void> {
    await this.decide({ skipped: true }, true);
  }

  async flag(): Promise<void> {
    const flagged = !this.item?.state.decision.flagged;
    this.say(flagged ? "flagged" : "flag taken away");
    await this.decide({ flagged });
  }

  async reset(): Promise<void> {
    await this.decide({ units: "?".repeat(this.item?.units.length ?? 0), text: null, settled: false, skipped: false });
  }

  /** Go to the field for a note. */
  note(): void {
    const details = this.body.querySelector("details");
    if (!details) return;
    details.open = true;
    details.querySelector("input")?.focus();
  }

  /** Turn the unit with this number; without one, the unit that the arrow keys are on. */
  async turn(number = this.unitAt): Promise<void> {
    const signs = [...(this.item?.state.decision.units ?? "")];
    if (signs[number] === undefined) return;
    this.unitAt = number;
    const sign = signs[number] === "+" ? "-" : "+";
    signs[number] = sign;
    const unit = this.item?.units[number];
    if (unit) this.say(`${kindName(unit)}, ${SAID[sign]}`);
    await this.decide({ units: signs.join(""), text: null, settled: !signs.includes("?"), skipped: false });
  }

  walk(step: number): void {
    const count = this.item?.units.length ?? 0;
    if (!count) return;
    this.unitAt = (this.unitAt + step + count) % count;
    this.chips().forEach((chip, at) => {
      chip.tabIndex = at === this.unitAt ? 0 : -1;
      if (at === this.unitAt) chip.focus();
    });
  }

  /** Open the field to type another caption. */
  retype(text?: string): void {
    const { item } = this;
    if (!item) return;
    const field = h("textarea", {
      id: "retype", rows: 2, maxLength: 10_000, value: text ?? item.state.caption, spellcheck: true,
      onkeydown: (event: KeyboardEvent) => {
        if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
          event.preventDefault();
          this.saveTyped(item);
        } else if (event.key === "Escape") {
          event.preventDefault();
          this.closeField();
        }
      },
    });
    this.field = field;
    const place = this.body.querySelector(".outcome");
    if (place) {
      show(
        place,
        h("label", { for: "retype" }, "Your caption"),
        field,
        h(
          "div",
          { class: "row" },
          h("button", { type: "button", class: "primary", onclick: () => this.saveTyped(item) }, "Save"),
          h("button", { type: "button", onclick: () => this.closeField() }, "Cancel"),
          h("span", { class: "quiet hint" }, "Enter saves, Esc leaves it"),
        ),
      );
    }
    this.actions.typing(true);
    field.focus();
    field.setSelectionRange(field.value.length, field.value.length);
  }

  private saveTyped(item: Item): void {
    const text = this.field?.value;
    if (text === undefined) return;
    this.field = null;
    this.actions.typing(false);
    this.element.focus();
    this.actions.act(async () => {
      if (this.item?.row === item.row) await this.decide({ text, settled: true, skipped: false }, true);
    });
  }

  private closeField(): void {
    this.field = null;
    this.actions.typing(false);
    this.draw();
    this.element.focus();
  }

  private async verdict(sign: "+" | "-"): Promise<void> {
    const units = sign.repeat(this.item?.units.length ?? 0);
    await this.decide({ units, text: null, settled: true, skipped: false }, true);
  }

  /** Change what is decided, and leave the rest of it as it is. */
  private async decide(change: Partial<Decision>, onward = false): Promise<void> {
    if (this.item) await this.actions.decide({ ...this.item.state.decision, ...change }, onward);
  }

  private chips(): HTMLButtonElement[] {
    return [...this.body.querySelectorAll<HTMLButtonElement>(".chip")];
  }

  private drawPicture(): void {
    const { item } = this;
    if (!item?.image) {
      show(this.picture, h("div", { class: "no-picture quiet" }, icon("picture"), "no picture"));
      return;
    }
    const image = h("img", { src: item.image, alt: `Picture of caption ${item.row}: ${item.original}` });
    image.addEventListener("error", () =>
      show(this.picture, h("div", { class: "no-picture quiet" }, icon("picture"), "the picture cannot be read")),
    );
    show(this.picture, image);
  }

  private draw(): void {
    const { item } = this;
    if (!item) return;
    const { state } = item;
    const focused = document.activeElement?.classList.contains("chip") ?? false;
    show(
      this.body,
      h(
        "div",
        { class: "facts" },
        h("span", { class: `badge ${state.standing}` }, state.standing),
        state.decision.flagged ? h("span", { class: "badge flagged" }, icon("flag"), "flagged") : null,
        h("span", { class: "quiet" }, this.story(item)),
      ),
      h("div", { class: "block" }, h("h2", {}, "Original"), h("p", { class: "caption original" }, item.original || "(empty)")),
      h("div", { class: "block" }, h("h2", {}, "Edit"), this.editLine(item)),
      h("div", { class: "block outcome", "aria-live": "off" }, h("h2", {}, "Result"), h("p", { class: "caption result", id: "result" }, state.caption || "(empty)")),
      h(
        "details",
        { class: "note", open: state.decision.note !== "" },
        h("summary", {}, "Note"),
        h("input", {
          type: "text", "aria-label": "Note for others", maxLength: 1000, value: state.decision.note,
          onchange: (event: Event) => {
            const note = (event.target as HTMLInputElement).value;
            this.actions.act(() => this.decide({ note }));
          },
        }),
      ),
    );
    if (focused) this.chips()[this.unitAt]?.focus();
  }

  private story(item: Item): string {
    const parts = [`#${item.row}`, `id ${item.id}`, item.place];
    if (item.confidence !== null) parts.push(`${percent(item.confidence)} sure`);
    if (item.fits !== null) parts.push(`the original fits ${percent(item.fits)}`);
    if (item.status === "held") parts.push(item.reason ? `held: ${item.reason}` : "held for review");
    if (item.status === "failed") parts.push(`failed: ${item.reason ?? "unknown"}`);
    if (item.state.by) parts.push(`decided by ${item.state.by}`);
    return parts.join(" · ");
  }

  /** The edit in reading order: kept words as text, each unit a button. */
  private editLine(item: Item): HTMLElement {
    if (!item.units.length) {
      return h("p", { class: "line quiet" }, item.status === "failed" ? "The editor could not look at this caption." : "The editor would leave it as it is.");
    }
    const unitOf = new Map<number, number>();
    item.units.forEach((unit, number) => unit.operations.forEach((at) => unitOf.set(at, number)));
    const drawn = new Set<number>();
    const parts: (Node | string)[] = [];
    item.operations.forEach((operation, at) => {
      const number = unitOf.get(at);
      if (number === undefined) parts.push(h("span", { class: "word keep" }, operation.token), " ");
      else if (!drawn.has(number)) {
        drawn.add(number);
        const unit = item.units[number];
        if (unit) parts.push(this.chip(unit, number, item.state.decision), " ");
      }
    });
    return h("div", { class: "line", role: "toolbar", "aria-label": "Operations" }, parts);
  }

  private chip(unit: Unit, number: number, decision: Decision): HTMLButtonElement {
    const sign = decision.units[number] ?? "?";
    const retyped = decision.text !== null;
    return h(
      "button",
      {
        type: "button",
        class: `chip ${retyped ? "overruled" : { "+": "yes", "-": "no", "?": "unsure" }[sign]}`,
        tabIndex: number === this.unitAt ? 0 : -1,
        "aria-label": `${number + 1}: ${kindName(unit)}, ${percent(unit.probability) || "no probability"}, ${SAID[sign]}`,
        onclick: () => this.actions.act(() => this.turn(number)),
        onfocus: () => (this.unitAt = number),
      },
      number < 9 ? h("kbd", { "aria-hidden": "true" }, number + 1) : null,
      unit.deleted !== null ? h("del", {}, unit.deleted) : null,
      unit.added !== null ? h("ins", {}, unit.added) : null,
      h("small", { class: "sure" }, percent(unit.probability)),
      sign === "+" ? icon("check") : sign === "-" ? icon("cross") : null,
    );
  }
}
