/** The playground: a picture, a caption, and the edit as it happens. */

import { get, post, signIn } from "./api";
import { h, icon, percent, show } from "./dom";
import { rowsOf, type Edit } from "./edit";
import type { Gaze } from "./heatmap";
import { DIGITS, type Key, listen, showSheet } from "./keys";
import { KnobPanel } from "./knobs";
import { PictureStage } from "./picture";
import { SentPicture } from "./sent";
import { copyPicture, copyText, curl, savePicture } from "./share";
import { themeButton } from "./theme";
import { toast } from "./toast";
import { textLine, wordLine } from "./words";

interface Example {
  url: string;
  title: string;
  caption: string;
}

interface Model {
  model: string;
  version: string;
  knobs: Record<string, unknown>;
  max_words: number;
  limits: { body_bytes: number; caption_chars: number };
}

const TYPING_PAUSE = 350;
const STEP = 420;
const calm = matchMedia("(prefers-reduced-motion: reduce)");

class Playground {
  private model: Model | null = null;
  private picture: SentPicture | null = null;
  private edit: Edit | null = null;
  /** The wish that was sent last. */
  private asked = "";
  private pictures = 0;
  private busy = false;
  private timer = 0;
  private readonly gazes = new Map<string, Promise<Gaze>>();
  private pointed: string | null = null;

  private readonly stage = new PictureStage((file, name) => this.setPicture(file, name));
  private readonly knobs = new KnobPanel(() => void this.refresh());
  private readonly caption = h("textarea", {
    id: "caption", rows: 2, placeholder: "a dog lies on a sofa", spellcheck: true,
    oninput: () => {
      clearTimeout(this.timer);
      this.timer = window.setTimeout(() => void this.refresh(), TYPING_PAUSE);
    },
    onkeydown: (event: KeyboardEvent) => {
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
        event.preventDefault();
        clearTimeout(this.timer);
        void this.refresh();
      } else if (event.key === "Escape") this.caption.blur();
    },
  });
  private readonly refined = h("div", { class: "refined", id: "refined" });
  private readonly clean = h("p", { class: "clean", id: "clean", "aria-live": "polite" });
  private readonly facts = h("p", { class: "facts quiet" });
  private readonly rounds = h("ol", { class: "rounds", id: "rounds" });
  private readonly gazeNote = h("figcaption", { class: "gaze-note quiet", "aria-live": "polite" });
  private readonly shelf = h("ul", { class: "shelf" });
  private readonly takeaway = h("div", { class: "row takeaway" });
  private readonly state = h("span", { class: "state", role: "status" });
  private readonly foot = h("footer", { class: "quiet" });

  private readonly table: Key[] = [
    { keys: ["c", "/"], does: "write the caption", group: "Playground", run: () => this.caption.focus() },
    { keys: ["o"], does: "choose a picture", group: "Playground", run: () => this.stage.choose() },
    { keys: ["r"], does: "replay the rounds", group: "Playground", run: () => this.replay() },
    { keys: ["w"], does: "walk over the words (then ← →): where the model looks", group: "Playground", run: () => this.walk() },
    { keys: ["0"], does: "knobs as the model was tuned", group: "Playground", run: () => this.knobs.reset() },
    { ...DIGITS, does: "take that example", group: "Playground", run: (digit) => this.shelf.querySelectorAll("button")[Number(digit) - 1]?.click() },
    { keys: ["y"], does: "copy the refined caption", group: "Take away", run: () => this.take("text") },
    { keys: ["j"], does: "copy as JSON", group: "Take away", run: () => this.take("json") },
    { keys: ["p"], does: "copy a picture of the trace", group: "Take away", run: () => this.take("picture") },
    { keys: ["?"], does: "this sheet", group: "Help", run: () => this.help() },
  ];

  async start(): Promise<void> {
    this.build();
    listen(() => this.table);
    try {
      await signIn();
      const [model, examples] = await Promise.all([get<Model>("/model"), get<Example[]>("/examples")]);
      this.model = model;
      this.knobs.tune(model.knobs);
      this.caption.maxLength = model.limits.caption_chars;
      show(this.foot, `${model.model} · capedit ${model.version} · pictures stay on this machine's server, in memory only`);
      this.offer(examples);
      await this.refresh();
    } catch (error) {
      this.fail(error);
    }
  }

  private build(): void {
    document.body.prepend(
      h("a", { class: "skip-link", href: "#caption" }, "Skip to the caption"),
      h(
        "header",
        { class: "top" },
        h("h1", {}, h("span", { class: "mark" }, h("del", { "aria-hidden": "true" }, "cap"), h("ins", { "aria-hidden": "true" }, "edit"), h("span", { class: "visually-hidden" }, "capedit")), h("span", { class: "where" }, "playground")),
        h("div", { class: "row" }, themeButton(), h("button", { type: "button", class: "ghost square", "aria-label": "Keyboard help", title: "Keyboard (?)", onclick: () => this.help() }, icon("help"))),
      ),
      h(
        "main",
        { class: "playground fresh" },
        h("div", { class: "left" }, this.stage.element, this.gazeNote, h("section", { class: "examples", "aria-labelledby": "examples-title" }, h("h2", { id: "examples-title" }, "Try one of these"), this.shelf)),
        h(
          "div",
          { class: "right" },
          h("section", { class: "card write" }, h("div", { class: "row between" }, h("label", { for: "caption" }, "Caption"), this.state), this.caption),
          h("section", { class: "card result", "aria-labelledby": "result-title" }, h("h2", { id: "result-title" }, "Refined"), this.clean, this.refined, this.facts, this.takeaway),
          h("section", { class: "card", "aria-labelledby": "rounds-title" }, h("div", { class: "row between" }, h("h2", { id: "rounds-title" }, "Round by round"), h("button", { type: "button", class: "ghost", onclick: () => this.replay() }, icon("play"), "Replay")), this.rounds),
          this.knobs.element,
        ),
      ),
      this.foot,
    );
    show(
      this.takeaway,
      this.button("copy", "Text", "Copy the refined caption", () => this.take("text")),
      this.button("copy", "JSON", "Copy as JSON", () => this.take("json")),
      this.button("copy", "Picture", "Copy a picture of the trace", () => this.take("picture")),
      this.button("save", "SVG", "Save the trace as SVG", () => this.take("svg")),
      this.button("copy", "curl", "Copy as a curl command", () => this.take("curl")),
    );
    this.empty();
  }

  private button(name: "copy" | "save", text: string, label: string, run: () => void): HTMLButtonElement {
    return h("button", { type: "button", class: "ghost", "aria-label": label, title: label, onclick: run }, icon(name), text);
  }

  private offer(examples: Example[]): void {
    show(
      this.shelf,
      examples.map((example, at) =>
        h(
          "li",
          {},
          h(
            "button",
            { type: "button", class: "example", onclick: () => void this.useExample(example), title: `${example.caption} (${at + 1})` },
            h("img", { src: example.url, alt: "", width: 160, height: 120, loading: "lazy" }),
            h("span", {}, example.caption),
          ),
        ),
      ),
    );
    const section = this.shelf.closest<HTMLElement>(".examples");
    if (section) section.hidden = examples.length === 0;
  }

  private async useExample(example: Example): Promise<void> {
    try {
      const blob = await (await fetch(example.url)).blob();
      this.caption.value = example.caption;
      this.stage.take(blob, example.title);
    } catch (error) {
      this.fail(error);
    }
  }

  private setPicture(file: Blob, name: string): void {
    document.querySelector("main")?.classList.remove("fresh");
    this.pictures += 1;
    this.gazes.clear();
    this.gazeNote.textContent = "";
    const most = this.model?.limits.body_bytes ?? Infinity;
    this.picture = file.size > most ? null : new SentPicture(file, name);
    if (!this.picture) {
      this.fail(new Error(`This picture has ${Math.ceil(file.size / 2 ** 20)} MB; the server takes ${Math.floor(most / 2 ** 20)}.`));
    }
    void this.refresh();
    if (!this.caption.value.trim()) this.caption.focus();
  }

  /** All that the answer depends on. */
  private wish(): string {
    return JSON.stringify([this.pictures, this.caption.value.trim(), this.knobs.values()]);
  }

  /** Edit what is on the page now. While one request is under way, only the latest wish waits. */
  private async refresh(): Promise<void> {
    const caption = this.caption.value.trim();
    const { picture } = this;
    if (!picture || !caption) {
      this.empty();
      return;
    }
    if (!this.model) return; // its knobs are not known yet; start() comes back to this
    const wish = this.wish();
    if (this.busy || wish === this.asked) return;
    this.busy = true;
    this.asked = wish;
    this.state.textContent = "editing …";
    try {
      const edit = await picture.edit(caption, this.knobs.values());
      if (picture === this.picture && this.caption.value.trim()) this.showEdit(edit);
    } catch (error) {
      if (picture === this.picture) {
        this.empty(error instanceof Error ? error.message : String(error)); // never the edit of another picture
        this.fail(error);
      }
      this.asked = ""; // Enter tries again
    }
    this.busy = false;
    this.state.textContent = "";
    if (this.wish() !== wish) void this.refresh();
  }

  private showEdit(edit: Edit): void {
    const fresh = !this.edit || JSON.stringify(edit.trace) !== JSON.stringify(this.edit.trace);
    this.edit = edit;
    this.takeaway.classList.remove("off");
    const fits = edit.fits === null ? "" : ` · the original fits with ${percent(edit.fits)}`;
    const what = edit.changed ? `${edit.rounds} ${edit.rounds === 1 ? "round" : "rounds"} · ${edit.steps} ${edit.steps === 1 ? "step" : "steps"} · ${percent(edit.confidence)} sure` : `left as it is · ${percent(edit.confidence)} sure`;
    this.facts.textContent = what + fits;
    this.clean.textContent = edit.caption || "(nothing is left)";
    show(this.refined, wordLine(edit.operations, "Words of the edit", (at) => void this.point(at)));
    show(
      this.rounds,
      rowsOf(edit).map((row) => h("li", {}, h("span", { class: "label" }, row.label), textLine(row.operations))),
    );
    if (fresh) this.replay();
  }

  private empty(words = this.picture ? "Type what the picture shows." : "Drop a picture and type a caption, or try an example."): void {
    this.edit = null;
    this.asked = "";
    show(this.clean, h("span", { class: "quiet" }, words));
    show(this.refined);
    show(this.rounds);
    this.facts.textContent = "";
    this.takeaway.classList.add("off");
    this.stage.heat.clear();
  }

  /** Show the rounds one after another. */
  private replay(): void {
    const rows = [...this.rounds.children];
    for (const [at, row] of rows.entries()) {
      row.getAnimations().forEach((animation) => animation.cancel());
      if (calm.matches) continue;
      row.animate(
        [{ opacity: 0, transform: "translateY(4px)" }, { opacity: 1, transform: "none" }],
        { duration: 260, delay: at * STEP, fill: "backwards", easing: "ease-out" },
      );
      for (const changed of row.querySelectorAll(".delete, .add")) {
        changed.animate([{ backgroundColor: "var(--flash)" }, {}], { duration: 700, delay: at * STEP + 120, fill: "backwards" });
      }
    }
  }

  private walk(): void {
    this.refined.querySelector<HTMLElement>("button[tabindex='0']")?.focus();
  }

  /** Show where the model looks for a word of the edit: added words are looked for in the refined caption. */
  private async point(at: number | null): Promise<void> {
    const edit = this.edit;
    const operation = at === null ? undefined : edit?.operations[at];
    if (!edit || at === null || !operation) {
      this.pointed = null;
      this.stage.heat.clear();
      this.gazeNote.textContent = "";
      return;
    }
    const added = operation.op === "ADD";
    const caption = added ? edit.caption : edit.source;
    const place = edit.operations.slice(0, at).filter((one) => one.op !== (added ? "DELETE" : "ADD")).length;
    const key = `${caption}\n${place}`;
    this.pointed = key;
    try {
      const gaze = await this.gaze(caption, edit.image_id);
      if (this.pointed !== key) return;
      const lit = this.stage.heat.draw(gaze, place);
      this.gazeNote.textContent = lit
        ? `Where the model looks for “${operation.token}”`
        : `No part of the picture speaks for “${operation.token}”`;
    } catch (error) {
      if (this.pointed === key) this.gazeNote.textContent = error instanceof Error ? error.message : "";
    }
  }

  private gaze(caption: string, imageId: string): Promise<Gaze> {
    let found = this.gazes.get(caption);
    if (!found) {
      found = post<Gaze>("/gaze", { image_id: imageId, caption });
      this.gazes.set(caption, found);
      found.catch(() => this.gazes.delete(caption));
    }
    return found;
  }

  private take(what: "text" | "json" | "picture" | "svg" | "curl"): void {
    const edit = this.edit;
    if (!edit) {
      toast("There is nothing to take yet.", "bad");
      return;
    }
    const ways = {
      text: () => copyText(edit.caption, "Caption"),
      json: () => copyText(JSON.stringify(edit, null, 2), "JSON"),
      picture: () => copyPicture(edit),
      svg: () => savePicture(edit),
      curl: () => copyText(curl(edit.source, this.picture?.name ?? "photo.jpg", this.knobs.values()), "Command"),
    };
    ways[what]().catch((error: unknown) => this.fail(error));
  }

  private help(): void {
    showSheet(this.table);
  }

  private fail(error: unknown): void {
    toast(error instanceof Error ? error.message : String(error), "bad");
  }
}

void new Playground().start();
