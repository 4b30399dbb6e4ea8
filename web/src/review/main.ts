/** The review app: walk through the edits of a run and decide. */

import { get, post, Problem, signIn } from "../api";
import { h, icon, show } from "../dom";
import { type Key, listen, showSheet } from "../keys";
import { themeButton } from "../theme";
import { toast } from "../toast";
import { Card } from "./card";
import { askName, bulkDialog, exportDialog } from "./dialogs";
import { Filters } from "./filters";
import { CaptionList } from "./list";
import { ALL, DECIDED, type About, type Author, type Decision, type Item, type Kind, type News, type Query, type Standing, type State, type Turn } from "./model";

const POLL = 2500;
const AHEAD = 100;

class ReviewPage {
  private about: About | null = null;
  private me: Author = { id: "", name: "" };
  private kinds: Kind[] = [];
  private at = -1;
  /** What has been polled, and the latest that any answer told of. */
  private sequence = 0;
  private newest = 0;
  private others: News["present"] = [];
  /** Decisions are sent one after another, so that each knows what it builds on. */
  private sending: Promise<void> = Promise.resolve();
  /** How many decisions on each caption wait to be sent; a conflict makes them void. */
  private readonly waiting = new Map<number, number>();
  private epoch = 0;
  /** For each caption the change that its next decision builds on. */
  private readonly bases = new Map<number, number>();
  private readonly ahead = new Map<number, Promise<Item>>();
  private opening = 0;
  private finding = 0;

  private readonly filters = new Filters(() => void this.find());
  private readonly list = new CaptionList((at) => {
    document.body.classList.remove("listing");
    void this.go(at);
  });
  private readonly card = new Card({
    decide: (decision, onward) => this.decide(decision, onward),
    typing: (open) => document.body.classList.toggle("typing", open),
  });
  private readonly found = h("p", { class: "found quiet", role: "status" });
  private readonly progress = h("progress", { max: 1, value: 0, "aria-label": "Edits decided" });
  private readonly tally = h("span", { class: "tally" });
  private readonly people = h("span", { class: "people" });
  private readonly name = h("button", { type: "button", class: "ghost", onclick: () => void this.rename() });
  private readonly undoButton = this.tool("undo", "Undo", "U", () => void this.turn("undo"));
  private readonly redoButton = this.tool("redo", "Redo", "Shift + U", () => void this.turn("redo"));

  private readonly table: Key[] = [
    { keys: ["a", "Enter"], does: "accept all operations, go on", group: "Decide", run: () => this.card.accept() },
    { keys: ["r"], does: "reject all operations, go on", group: "Decide", run: () => this.card.reject() },
    { keys: ["e"], does: "type another caption", group: "Decide", run: () => this.card.retype() },
    { keys: ["s"], does: "skip", group: "Decide", run: () => this.card.skip() },
    { keys: ["f"], does: "flag, or take the flag away", group: "Decide", run: () => this.card.flag() },
    { keys: ["Backspace", "Delete"], does: "decide nothing after all", group: "Decide", run: () => this.card.reset() },
    { keys: ["ArrowRight", "l"], does: "next operation", group: "Operations", run: () => this.card.walk(1) },
    { keys: ["ArrowLeft", "h"], does: "operation before", group: "Operations", run: () => this.card.walk(-1) },
    { keys: [" ", "t"], does: "accept or reject the operation", group: "Operations", run: () => this.card.turn() },
    ...Array.from({ length: 9 }, (_, at) => ({
      keys: [String(at + 1)], does: "accept or reject operation 1 to 9", group: "Operations", run: () => this.card.turn(at),
    })),
    { keys: ["j", "ArrowDown"], does: "next caption", group: "Move", run: () => void this.go(this.at + 1) },
    { keys: ["k", "ArrowUp"], does: "caption before", group: "Move", run: () => void this.go(this.at - 1) },
    { keys: ["n"], does: "next caption to do", group: "Move", run: () => void this.onward() },
    { keys: ["PageDown"], does: "twenty on", group: "Move", run: () => void this.go(Math.min(this.at + 20, this.list.length - 1)) },
    { keys: ["PageUp"], does: "twenty back", group: "Move", run: () => void this.go(Math.max(this.at - 20, 0)) },
    { keys: ["Home", "g"], does: "first caption", group: "Move", run: () => void this.go(0) },
    { keys: ["End"], does: "last caption", group: "Move", run: () => void this.go(this.list.length - 1) },
    { keys: ["u", "Mod+z"], does: "undo, without limit", group: "All", run: () => void this.turn("undo") },
    { keys: ["Shift+u", "Mod+Shift+z", "Mod+y"], does: "redo", group: "All", run: () => void this.turn("redo") },
    { keys: ["b"], does: "decide on many at once", group: "All", run: () => this.bulk() },
    { keys: ["x"], does: "export", group: "All", run: () => this.export() },
    { keys: ["/"], does: "search", group: "All", run: () => this.search() },
    { keys: ["?"], does: "this sheet", group: "All", run: () => this.help() },
  ];

  async start(): Promise<void> {
    this.build();
    listen(() => this.table);
    try {
      await signIn();
      this.about = await get<About>("/review");
      document.title = `${this.about.name} · capedit review`;
      show(this.where(), this.about.name);
      await this.introduce(this.about.reviewer);
      const kept = this.kept();
      this.filters.put(kept.query);
      await this.poll(true);
      await this.find(kept.row);
      setInterval(() => void this.poll(), POLL);
    } catch (error) {
      this.fail(error);
    }
  }

  private build(): void {
    document.body.prepend(
      h("a", { class: "skip-link", href: "#desk" }, "Skip to the caption"),
      h(
        "header",
        { class: "top" },
        h("h1", {}, h("span", { class: "mark" }, h("del", { "aria-hidden": "true" }, "cap"), h("ins", { "aria-hidden": "true" }, "edit"), h("span", { class: "visually-hidden" }, "capedit review")), h("span", { class: "where" })),
        h("div", { class: "standing" }, this.progress, this.tally),
        h(
          "div",
          { class: "row tools" },
          this.people,
          this.undoButton,
          this.redoButton,
          this.tool("layers", "Bulk", "B", () => this.bulk()),
          this.tool("save", "Export", "X", () => this.export()),
          this.name,
          themeButton(),
          h("button", { type: "button", class: "ghost square", "aria-label": "Keyboard help", title: "Keyboard (?)", onclick: () => this.help() }, icon("help")),
        ),
      ),
      h(
        "main",
        { class: "review" },
        h(
          "aside",
          { class: "side", "aria-label": "Captions" },
          this.filters.element,
          h("div", { class: "row between" }, this.found, h("button", { type: "button", class: "ghost close-list", onclick: () => document.body.classList.remove("listing") }, "Close")),
          this.list.element,
        ),
        h("section", { class: "main", id: "desk", "aria-label": "Decide" }, this.card.element, this.bar()),
      ),
    );
    this.card.nothing("loading …");
  }

  private bar(): HTMLElement {
    const button = (name: Parameters<typeof icon>[0], text: string, key: string, kind: string, run: () => void): HTMLButtonElement =>
      h("button", { type: "button", class: kind, "aria-keyshortcuts": key.toLowerCase(), onclick: run }, icon(name), text, h("kbd", { "aria-hidden": "true" }, key));
    return h(
      "div",
      { class: "bar", role: "toolbar", "aria-label": "Decision" },
      button("check", "Accept", "A", "yes", () => this.card.accept()),
      button("cross", "Reject", "R", "no", () => this.card.reject()),
      button("pen", "Retype", "E", "", () => this.card.retype()),
      button("skip", "Skip", "S", "", () => this.card.skip()),
      button("flag", "Flag", "F", "", () => this.card.flag()),
      h("span", { class: "spring" }),
      h("button", { type: "button", class: "ghost open-list", onclick: () => this.search() }, icon("list"), "List"),
      h("button", { type: "button", class: "ghost square", "aria-label": "Caption before", title: "Before (K)", onclick: () => void this.go(this.at - 1) }, icon("up")),
      h("button", { type: "button", class: "ghost square", "aria-label": "Next caption", title: "Next (J)", onclick: () => void this.go(this.at + 1) }, icon("down")),
    );
  }

  private tool(name: Parameters<typeof icon>[0], text: string, key: string, run: () => void): HTMLButtonElement {
    return h("button", { type: "button", class: "ghost tool", title: `${text} (${key})`, "aria-label": text, onclick: run }, icon(name), h("span", { class: "tool-text" }, text));
  }

  private where(): HTMLElement {
    return document.querySelector<HTMLElement>(".where") ?? document.body;
  }

  private async introduce(offered: string): Promise<void> {
    let id = localStorage.getItem("capedit-reviewer-id");
    if (!id) {
      id = crypto.randomUUID ? crypto.randomUUID() : Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
      localStorage.setItem("capedit-reviewer-id", id);
    }
    let name = localStorage.getItem("capedit-reviewer") ?? offered;
    if (!name) name = await askName("");
    this.setName({ id, name });
  }

  private async rename(): Promise<void> {
    const name = await askName(this.me.name);
    localStorage.setItem("capedit-reviewer", name);
    this.setName({ ...this.me, name });
  }

  private setName(me: Author): void {
    this.me = me;
    show(this.name, icon("person"), me.name);
    this.name.ariaLabel = `Reviewer: ${me.name}. Change the name`;
  }

  /** Where the page was: kept in the address, so that reloading, and sending the address to someone, lead back. */
  private kept(): { query: Query; row: number | undefined } {
    const kept = new URLSearchParams(location.hash.slice(1));
    const row = kept.get("row");
    try {
      const query = { ...ALL, ...(JSON.parse(kept.get("query") ?? "{}") as Partial<Query>) };
      return { query, row: row === null ? undefined : Number(row) };
    } catch {
      return { query: ALL, row: undefined };
    }
  }

  private keep(): void {
    const query = this.filters.query();
    const differs = Object.entries(query).filter(([key, value]) => value !== ALL[key as keyof Query]);
    const kept = new URLSearchParams();
    if (differs.length) kept.set("query", JSON.stringify(Object.fromEntries(differs)));
    const row = this.list.row(this.at);
    if (row !== undefined) kept.set("row", String(row));
    history.replaceState(null, "", `#${kept}`);
  }

  private async find(row?: number): Promise<void> {
    const number = ++this.finding;
    try {
      const answer = await post<{ rows: number[]; kinds: Kind[] }>("/review/query", this.filters.query());
      if (number !== this.finding) return; // the reviewer has typed on
      this.kinds = answer.kinds;
      this.filters.showKinds(answer.kinds);
      this.list.set(answer.rows);
      this.found.textContent = `${answer.rows.length.toLocaleString("en")} ${answer.rows.length === 1 ? "caption" : "captions"}`;
      this.at = -1;
      if (!answer.rows.length) {
        this.card.nothing("No caption is like this.");
        this.keep();
        return;
      }
      const place = row === undefined ? undefined : this.list.place(row);
      if (place !== undefined) await this.go(place);
      else if (row === undefined) await this.onward(-1, true);
      else await this.go(0);
    } catch (error) {
      this.fail(error);
    }
  }

  private async go(at: number): Promise<void> {
    const row = this.list.row(at);
    if (row === undefined) return;
    document.body.classList.remove("typing");
    this.at = at;
    this.list.select(at);
    this.keep();
    await this.openRow(row);
    const next = this.list.row(at + 1);
    if (next !== undefined) this.prefetch(next);
  }

  private async openRow(row: number): Promise<void> {
    const number = ++this.opening;
    try {
      const item = await (this.ahead.get(row) ?? this.fetch(row));
      this.ahead.delete(row);
      if (number !== this.opening) return;
      this.bases.set(row, item.state.change);
      this.card.open(item);
      this.card.say(`Caption ${this.at + 1} of ${this.list.length}: ${item.original}`);
    } catch (error) {
      if (number === this.opening) this.fail(error);
    }
  }

  private fetch(row: number): Promise<Item> {
    return get<Item>(`/review/items/${row}`);
  }

  private prefetch(row: number): void {
    if (this.ahead.has(row)) return;
    const coming = this.fetch(row);
    if (this.ahead.size > 8) this.ahead.clear();
    this.ahead.set(row, coming);
    coming.then(
      (item) => {
        if (item.image) new Image().src = item.image;
      },
      () => this.ahead.delete(row),
    );
  }

  /** The next caption that waits for a decision and that nobody else is looking at. */
  private async onward(from = this.at, orFirst = false): Promise<void> {
    const taken = new Set(this.others.map((one) => one.row));
    const { length } = this.list;
    for (let start = from + 1; start < length; start += AHEAD) {
      const lines = await this.list.known(start, Math.min(start + AHEAD, length));
      const step = lines.findIndex((line) => line && !DECIDED.has(line.standing) && line.standing !== "skipped" && !taken.has(line.row));
      if (step >= 0) return this.go(start + step);
    }
    if (orFirst) return this.go(0);
    const before = await this.list.known(0, Math.min(AHEAD, Math.max(from, 0)));
    const left = before.findIndex((line) => line && !DECIDED.has(line.standing) && line.standing !== "skipped");
    if (left >= 0) return this.go(left);
    toast("Nothing more to do in this list.");
    return this.go(Math.min(from + 1, length - 1));
  }

  private decide(decision: Decision, onward: boolean): void {
    const item = this.card.current;
    if (!item) return;
    const at = this.at;
    const epoch = this.epoch;
    this.waiting.set(item.row, (this.waiting.get(item.row) ?? 0) + 1);
    // Shown at once; the server's word replaces it when no later decision is on its way.
    this.card.refresh({ ...item, state: { ...item.state, decision, standing: standingOf(decision), by: this.me.name } });
    this.sending = this.sending.then(async () => {
      const left = (this.waiting.get(item.row) ?? 1) - 1;
      if (left > 0) this.waiting.set(item.row, left);
      else this.waiting.delete(item.row);
      if (epoch !== this.epoch) return; // built on what turned out to be overtaken
      const base = this.bases.get(item.row) ?? item.state.change;
      try {
        const told = await post<News>("/review/decide", { author: this.me, row: item.row, base, decision });
        this.take(told);
        if (onward) await this.onward(at);
      } catch (error) {
        if (error instanceof Problem && error.status === 409) await this.overtaken(item.row, error);
        else {
          this.fail(error);
          await this.openRow(item.row);
        }
      }
    });
  }

  private async overtaken(row: number, error: Problem): Promise<void> {
    this.epoch += 1;
    const item = await this.fetch(row);
    this.patch(item.state);
    if (this.card.current?.row === row) this.card.open(item);
    toast(`${error.message}. Theirs is shown; decide again to overrule it.`, "bad");
  }

  private async turn(way: "undo" | "redo"): Promise<void> {
    await this.sending;
    try {
      const told = await post<Turn>(`/review/${way}`, { author: this.me });
      this.take(told.told);
      if (!told.count) {
        toast(way === "undo" ? "Nothing to undo." : "Nothing to redo.");
        return;
      }
      const what = told.label || `caption #${told.rows[0]}`;
      toast(`${way === "undo" ? "Undone" : "Done again"}: ${what}${told.count > 1 ? ` (${told.count.toLocaleString("en")} captions)` : ""}`);
      const row = told.rows[0];
      const place = row === undefined ? undefined : this.list.place(row);
      if (place !== undefined && told.count === 1) await this.go(place);
      else if (row !== undefined && told.count === 1) await this.openRow(row);
    } catch (error) {
      this.fail(error);
    }
  }

  private async poll(first = false): Promise<void> {
    if (document.hidden && !first) return;
    try {
      const news = await post<News>("/review/news", { author: this.me, since: this.sequence, row: this.card.current?.row ?? null });
      if (news.sequence >= this.newest) this.sequence = news.sequence;
      this.take(news);
    } catch (error) {
      if (first) throw error;
      this.tally.textContent = "the server does not answer";
    }
  }

  private take(news: News): void {
    if (news.sequence < this.newest) return; // overtaken on the way by a later answer
    this.newest = news.sequence;
    if (news.stale) {
      this.list.forget();
      this.ahead.clear();
      const row = this.card.current?.row;
      if (row !== undefined) {
        void this.fetch(row).then((item) => {
          this.bases.set(row, item.state.change);
          if (this.card.current?.row === row) this.card.refresh(item);
        });
      }
    }
    for (const state of news.states) this.patch(state);
    this.others = news.present;
    this.undoButton.disabled = news.undo === 0;
    this.redoButton.disabled = news.redo === 0;
    this.showProgress(news);
  }

  private patch(state: State): void {
    this.ahead.delete(state.row);
    this.bases.set(state.row, state.change);
    this.list.update(state.row, {
      standing: state.standing, flagged: state.decision.flagged,
      ...(state.decision.text === null ? {} : { refined: state.decision.text }),
    });
    const item = this.card.current;
    if (item?.row !== state.row || this.waiting.has(state.row)) return;
    if (JSON.stringify(item.state) !== JSON.stringify(state)) this.card.refresh({ ...item, state });
  }

  private showProgress(news: News): void {
    const total = this.about?.proposals ?? 0;
    const done = news.proposals_decided;
    this.progress.max = Math.max(1, total);
    this.progress.value = done;
    const left = total - done;
    const pace = news.team_pace;
    const rest = pace > 0 && left > 0 ? ` · ${pace.toFixed(pace < 10 ? 1 : 0)}/min · ${duration(left / pace)} left` : "";
    this.tally.textContent = `${done.toLocaleString("en")} of ${total.toLocaleString("en")} decided${rest}`;
    show(
      this.people,
      news.present.slice(0, 5).map((one) =>
        h("span", { class: "person", title: one.row === null ? one.name : `${one.name} is at #${one.row}` }, one.name.slice(0, 2), h("span", { class: "visually-hidden" }, ` ${one.name} is here`)),
      ),
    );
  }

  private bulk(): void {
    if (!this.kinds.length) {
      toast("There are no edits in this list.");
      return;
    }
    bulkDialog(this.me, this.filters.query(), this.kinds, this.list.length, (told, words) => {
      this.list.forget();
      this.take(told);
      toast(`${words} U takes it back.`);
      const row = this.card.current?.row;
      if (row !== undefined) void this.openRow(row);
    });
  }

  private export(): void {
    if (this.about) exportDialog(this.about);
  }

  private search(): void {
    document.body.classList.add("listing");
    this.filters.search.focus();
  }

  private help(): void {
    showSheet(this.table.filter((key) => !/^[2-9]$/.test(key.keys[0] ?? "")).map((key) => (key.keys[0] === "1" ? { ...key, keys: ["1", "9"] } : key)));
  }

  private fail(error: unknown): void {
    toast(error instanceof Error ? error.message : String(error), "bad");
  }
}

/** As the server would call it; for the moment until it does. */
function standingOf(decision: Decision): Standing {
  if (decision.text !== null) return "retyped";
  const made = decision.units.replaceAll("?", "");
  if (made.length === decision.units.length && (made || decision.settled)) {
    return !made.includes("-") ? "accepted" : made.includes("+") ? "mixed" : "rejected";
  }
  return made ? "partial" : decision.skipped ? "skipped" : "open";
}

function duration(minutes: number): string {
  if (minutes < 1) return "under a minute";
  if (minutes < 60) return `${Math.round(minutes)} min`;
  return minutes < 48 * 60 ? `${Math.round(minutes / 60)} h` : `${Math.round(minutes / 1440)} days`;
}

void new ReviewPage().start();
