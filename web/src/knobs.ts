/** The knobs of the editor, as sliders that act at once. */

import { h, icon } from "./dom";

interface Knob {
  name: string;
  label: string;
  hint: string;
  min: number;
  max: number;
  step: number;
  show: (value: number) => string;
}

const signed = (value: number): string => (value > 0 ? `+${value.toFixed(1)}` : value.toFixed(1));

const KNOBS: Knob[] = [
  { name: "keep_bias", label: "KEEP bias", hint: "right: deletes less", min: -6, max: 6, step: 0.1, show: signed },
  { name: "stop_bias", label: "ADD reluctance", hint: "right: adds less", min: -6, max: 6, step: 0.1, show: signed },
  {
    name: "min_confidence", label: "Minimum confidence", hint: "less sure edits are not made",
    min: 0, max: 1, step: 0.01, show: (value) => `${Math.round(100 * value)}%`,
  },
  {
    name: "fits_above", label: "Leave alone", hint: "captions likelier than this to fit",
    min: 0, max: 1, step: 0.01, show: (value) => `${Math.round(100 * value)}%`,
  },
  { name: "rounds", label: "Rounds", hint: "of insertion, at most", min: 1, max: 8, step: 1, show: String },
];

export class KnobPanel {
  readonly element: HTMLElement;
  private readonly inputs = new Map<string, HTMLInputElement>();
  private readonly outputs = new Map<string, HTMLOutputElement>();
  private own: Record<string, number> = {};

  constructor(private readonly onchange: () => void) {
    const rows = KNOBS.map((knob) => {
      const input = h("input", {
        type: "range", id: `knob-${knob.name}`, min: String(knob.min), max: String(knob.max), step: String(knob.step),
        "aria-describedby": `hint-${knob.name}`,
        oninput: () => {
          this.draw(knob);
          this.onchange();
        },
      });
      const output = h("output", { for: `knob-${knob.name}` });
      this.inputs.set(knob.name, input);
      this.outputs.set(knob.name, output);
      return h(
        "div",
        { class: "knob" },
        h("label", { for: `knob-${knob.name}` }, knob.label),
        output,
        input,
        h("span", { class: "quiet", id: `hint-${knob.name}` }, knob.hint),
      );
    });
    this.element = h(
      "section",
      { class: "card knobs", "aria-labelledby": "knobs-title" },
      h(
        "div",
        { class: "row between" },
        h("h2", { id: "knobs-title" }, "Knobs"),
        h("button", { type: "button", class: "ghost", onclick: () => this.reset() }, icon("reset"), "As the model was tuned"),
      ),
      h("div", { class: "knob-grid" }, ...rows),
    );
  }

  /** The values that the model was tuned to. */
  tune(own: Record<string, unknown>): void {
    for (const knob of KNOBS) this.own[knob.name] = Number(own[knob.name] ?? 0);
    this.put();
  }

  reset(): void {
    this.put();
    this.onchange();
  }

  private put(): void {
    for (const knob of KNOBS) {
      const input = this.inputs.get(knob.name);
      if (input) input.value = String(this.own[knob.name] ?? 0);
      this.draw(knob);
    }
  }

  values(): Record<string, number> {
    return Object.fromEntries([...this.inputs].map(([name, input]) => [name, Number(input.value)]));
  }

  private draw(knob: Knob): void {
    const input = this.inputs.get(knob.name);
    const output = this.outputs.get(knob.name);
    if (!input || !output) return;
    const value = Number(input.value);
    output.textContent = knob.show(value);
    input.setAttribute("aria-valuetext", knob.show(value));
    input.style.setProperty("--part", `${(100 * (value - knob.min)) / (knob.max - knob.min)}%`);
  }
}
