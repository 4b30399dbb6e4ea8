/** The review app: walk through the edits of a run and decide. */

import { get, post, Problem, signIn } from "../api";
import { h, icon, show } from "../dom";
import { DIGITS, type Key, listen, showSheet } from "../keys";
import { themeButton } from "../theme";
import { toast } from "../toast";
import { readAddress, writeAddress } from "./address";
import { Card } from "./card";
import { bulkDialog, exportDialog } from "./dialogs";
import { Filters } from "./filters";
import { mark, square, tool, verdict } from "./frame";
import { CaptionList } from "./list";
import { isToDo, standingOf, type About, type Decision, type Item, type Kind, type News, type State, type Turn } from "./model";
import { Outbox } from "./outbox";
import { Progress } from "./progress";
import { Reviewer } from "./reviewer";

const POLL = 2500;
const AHEAD = 100;

class ReviewPage {
  private about: About | null = null;
  private kinds: Kind[] = [];
  private at = -1;
  /** What has been polled, and the latest that any answer told of. */
  private sequence = 0;
  private newest = 0;
  private polling = false;
  private others: News["present"] = [];
  /** What the reviewer does, one thing after another. */
  private acts: Promise<void> = Promise.resolve();
  /** The caption that is being opened, until it is on the desk. */
  private opened: Promise<void> = Promise.resolve();
  private opening = 0;
  /** How often the reviewer has wished for other captions; only the last wish is looked for. */
  private wishes = 0;
  /** How often captions have been told anew; what was asked for before that may be old when it comes. */
  private tellings = 0;
  private readonly ahead = new Map<number, Promise<Item>>();

  private readonly outbox = new Outbox(
    (news) => this.take(news),
    (row, error) => this.refused(row, error),
  );
  private readonly list = new CaptionList((at) => {
    document.body.classList.remove("listing");
    this.act(() => this.go(at));
  });
  private readonly filters = new Filters(
    () => {
      const wish = ++this.wishes;
      this.act(() => this.find(wish));
    },
    () => this.list.element.focus(),
  );
  private readonly card = new Card({
    act: (run) => this.onDesk(run),
    decide: (decision, onward) => this.decide(decision, onward),
    typing: (open) => document.body.classList.toggle("typing", open),
  });
  private readonly progress = new Progress();
  private readonly found = h("p", { class: "found quiet", role: "status" });
  private readonly where = h("span", { class: "where" });
  private readonly reviewer = new Reviewer();
  private readonly undoButton = tool("undo", "Undo", "U", () => this.act(() => this.turn("undo")));
  private readonly redoButton = tool("redo", "Redo", "Shift + U", () => this.act(() => this.turn("redo")));

  private readonly table: Key[] = [
    { keys: ["a", "Enter"], does: "accept all operations, go on", group: "Decide", run: () => this.accept() },
    { keys: ["r"], does: "reject all operations, go on", group: "Decide", run: () => this.reject() },
    { keys: ["e"], does: "type another caption", group: "Decide", run: () => this.retype() },
    { keys: ["s"], does: "skip", group: "Decide", run: () => this.skip() },
    { keys: ["f"], does: "flag, or take the flag away", group: "Decide", run: () => this.flag() },
    { keys: ["m"], does: "leave a note", group: "Decide", run: () => this.onDesk(() => this.card.note()) },
    { keys: ["Backspace", "Delete"], does: "decide nothing after all", group: "Decide", run: () => this.onDesk(() => this.card.reset()) },
    { keys: ["ArrowRight", "l"], does: "next operation", group: "Operations", repeats: true, run: () => this.onDesk(() => this.card.walk(1)) },
    { keys: ["ArrowLeft", "h"], does: "operation before", group: "Operations", repeats: true, run: () => this.onDesk(() => this.card.walk(-1)) },
    { keys: [" ", "t"], does: "accept or reject the operation", group: "Operations", run: () => this.onDesk(() => this.card.turn()) },
    { ...DIGITS, does: "accept or reject that operation", group: "Operations", run: (digit) => this.onDesk(() => this.card.turn(Number(digit) - 1)) },
    { keys: ["j", "ArrowDown"], does: "next caption", group: "Move", repeats: true, run: () => this.step(1) },
    { keys: ["k", "ArrowUp"], does: "caption before", group: "Move", repeats: true, run: () => this.step(-1) },
    { keys: ["n"], does: "next caption to do", group: "Move", run: () => this.act(() => this.onward()) },
    { keys: ["PageDown"], does: "twenty on", group: "Move", repeats: true, run: () => this.step(20) },
    { keys: ["PageUp"], does: "twenty back", group: "Move", repeats: true, run: () => this.step(-20) },
    { keys: ["Home", "g"], does: "first caption", group: "Move", run: () => this.step(-Infinity) },
    { keys: ["End"], does: "last caption", group: "Move", run: () => this.step(Infinity) },
    { keys: ["u", "Mod+z"], does: "undo, without limit", group: "All", repeats: true, run: () => this.act(() => this.turn("undo")) },
    { keys: ["Shift+u", "Mod+Shift+z", "Mod+y"], does: "redo", group: "All", repeats: true, run: () => this.act(() => this.turn("redo")) },
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
      show(this.where, this.about.name);
      await this.reviewer.introduce(this.about.reviewer);
      const kept = readAddress();
      this.filters.put(kept.query);
      await this.poll(true);
      await this.find(this.wishes, kept.row);
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
        mark(this.where),
        this.progress.element,
        h(
          "div",
          { class: "row tools" },
          this.progress.people,
          this.undoButton,
          this.redoButton,
          tool("layers", "Bulk", "B", () => this.bulk()),
          tool("save", "Export", "X", () => this.export()),
          this.reviewer.button,
          themeButton(),
          square("help", "Keyboard help", "?", () => this.help()),
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
    return h(
      "div",
      { class: "bar", role: "toolbar", "aria-label": "Decision" },
      verdict("check", "Accept", "A", "yes", () => this.accept()),
      verdict("cross", "Reject", "R", "no", () => this.reject()),
      verdict("pen", "Retype", "E", "", () => this.retype()),
      verdict("skip", "Skip", "S", "", () => this.skip()),
      verdict("flag", "Flag", "F", "", () => this.flag()),
      h("span", { class: "spring" }),
      h("button", { type: "button", class: "ghost open-list", onclick: () => this.search() }, icon("list"), "List"),
      square("up", "Caption before", "K", () => this.step(-1)),
      square("down", "Next caption", "J", () => this.step(1)),
    );
  }

  /** Do something when all before it is done: each thing finds the page as the one before has left it. */
  private act(run: () => void | Promise<void>): void {
    this.acts = this.acts.then(run).catch((error: unknown) => this.fail(error));
  }

  /** Do something with the caption on the desk, once it is there. */
  private onDesk(run: () => void | Promise<void>): void {
    this.act(async () => {
      await this.opened;
      await run();
    });
  }

  private accept(): void {
    this.onDesk(() => this.card.accept());
  }

  private reject(): void {
    this.onDesk(() => this.card.reject());
  }

  private retype(): void {
    this.onDesk(() => this.card.retype());
  }

  private skip(): void {
    this.onDesk(() => this.card.skip());
  }

  private flag(): void {
    this.onDesk(() => this.card.flag());
  }

  /** Moving on waits for no caption to load: only the last is opened. */
  private step(by: number): void {
    this.act(() => void this.go(Math.min(Math.max(this.at + by, 0), this.list.length - 1)));
  }

  private async find(wish: number, row?: number): Promise<void> {
    if (wish !== this.wishes) return;
    const answer = await post<{ rows: number[]; kinds: Kind[] }>("/review/query", this.filters.query());
    if (wish !== this.wishes) return; // the reviewer has typed on
    this.kinds = answer.kinds;
    this.filters.showKinds(answer.kinds);
    this.list.set(answer.rows);
    this.found.textContent = `${answer.rows.length.toLocaleString("en")} ${answer.rows.length === 1 ? "caption" : "captions"}`;
    this.at = -1;
    if (!answer.rows.length) {
      this.opening += 1; // what is still on its way is not wanted any more
      this.card.nothing("No caption is like this.");
      writeAddress(this.filters.query(), undefined);
      return;
    }
    if (row === undefined) await this.onward(-1, true);
    else await this.go(this.list.place(row) ?? 0);
  }

  private go(at: number): Promise<void> {
    const row = this.list.row(at);
    if (row === undefined) return Promise.resolve();
    document.body.classList.remove("typing");
    this.at = at;
    this.list.select(at);
    writeAddress(this.filters.query(), row);
    this.opened = this.open(row);
    return this.opened;
  }

  /** Put a caption on the desk; of several that are asked for, the last. */
  private async open(row: number): Promise<void> {
    const number = ++this.opening;
    try {
      const item = await this.latest(row);
      if (number !== this.opening) return;
      this.outbox.buildOn(item.state);
      this.card.open(item);
      this.card.say(`Caption ${this.at + 1} of ${this.list.length}: ${item.original}`);
      const next = this.list.row(this.at + 1);
      if (next !== undefined) this.prefetch(next);
    } catch (error) {
      if (number !== this.opening) return;
      this.card.nothing("This caption could not be loaded."); // never the one before under its name
      this.fail(error);
    }
  }

  /** A caption as it stands; fetched again if news came while it was on its way. */
  private async latest(row: number): Promise<Item> {
    for (;;) {
      const { tellings } = this;
      const item = await (this.ahead.get(row) ?? this.fetch(row));
      this.ahead.delete(row);
      if (tellings === this.tellings) return item;
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

  /** Go to the next caption that waits for a decision and that nobody else is looking at. */
  private async onward(from = this.at, orFirst = false): Promise<void> {
    const next = (await this.toDo(from + 1, this.list.length)) ?? (orFirst ? 0 : await this.toDo(0, from));
    if (next !== undefined) return this.go(next);
    toast("Nothing more to do in this list.");
    return this.go(Math.min(from + 1, this.list.length - 1));
  }

  private async toDo(from: number, to: number): Promise<number | undefined> {
    const taken = new Set(this.others.map((one) => one.row));
    for (let start = from; start < to; start += AHEAD) {
      const lines = await this.list.known(start, Math.min(start + AHEAD, to));
      const step = lines.findIndex((line) => isToDo(line.standing) && !taken.has(line.row));
      if (step >= 0) return start + step;
    }
    return undefined;
  }

  /** Shown at once, saved at once; only going on waits until it is saved. */
  private async decide(decision: Decision, onward: boolean): Promise<void> {
    const item = this.card.current;
    if (!item) return;
    const { at } = this;
    this.card.refresh({ ...item, state: { ...item.state, decision, standing: standingOf(decision), by: this.reviewer.author.name } });
    const saved = this.outbox.send(this.reviewer.author, item.row, decision);
    if (onward) {
      if (await saved) await this.onward(at);
    } else void saved.catch((error: unknown) => this.fail(error));
  }

  /**
   * The caption is shown as it stands, and only then is anything said; what was decided on it until then is void. Where
   * it cannot be fetched it is shown as it last was told of, and the next decision builds on that: nobody overrules
   * what he has not seen.
   */
  private async refused(row: number, error: unknown): Promise<void> {
    this.ahead.delete(row); // may be from before the refusal
    const item = await this.latest(row).catch(() => null);
    this.outbox.forget(row);
    const state = item?.state ?? this.outbox.base(row);
    if (state) this.patch(state);
    if (error instanceof Problem && error.status === 409) {
      toast(`${error.message}. ${item ? "Theirs is shown; decide again to overrule it." : "It cannot be shown now; yours is not saved."}`, "bad");
    } else this.fail(error);
  }

  private async turn(way: "undo" | "redo"): Promise<void> {
    await this.outbox.settled();
    const told = await post<Turn>(`/review/${way}`, { author: this.reviewer.author });
    await this.take(told.told);
    const row = told.rows[0];
    if (row === undefined) {
      toast(way === "undo" ? "Nothing to undo." : "Nothing to redo.");
      return;
    }
    const what = told.label || `caption #${row}`;
    toast(`${way === "undo" ? "Undone" : "Done again"}: ${what}${told.count > 1 ? ` (${told.count.toLocaleString("en")} captions)` : ""}`);
    if (told.count > 1) return;
    const place = this.list.place(row);
    if (place !== undefined) await this.go(place);
    else {
      this.opened = this.open(row); // not in this list, but where the work is
      await this.opened;
    }
  }

  private async poll(first = false): Promise<void> {
    if (this.polling || (document.hidden && !first)) return;
    this.polling = true;
    try {
      const news = await post<News>("/review/news", { author: this.reviewer.author, since: this.sequence, row: this.card.current?.row ?? null });
      if (news.sequence >= this.newest) this.sequence = news.sequence;
      await this.take(news);
    } catch (error) {
      if (first) throw error;
      this.progress.silence();
    } finally {
      this.polling = false;
    }
  }

  private async take(news: News): Promise<void> {
    if (news.sequence < this.newest) return; // overtaken on the way by a later answer
    this.newest = news.sequence;
    for (const state of news.states) this.patch(state);
    this.others = news.present;
    this.undoButton.disabled = news.undo === 0;
    this.redoButton.disabled = news.redo === 0;
    this.progress.show(news, this.about?.proposals ?? 0);
    if (news.stale) await this.renew();
  }

  /** Too much has changed to be told one by one. */
  private async renew(): Promise<void> {
    this.tellings += 1;
    this.list.forget();
    this.ahead.clear();
    const row = this.card.current?.row;
    if (row !== undefined) await this.reload(row);
  }

  private async reload(row: number): Promise<void> {
    this.patch((await this.latest(row)).state);
  }

  private patch(state: State): void {
    this.tellings += 1;
    this.ahead.delete(state.row);
    this.outbox.buildOn(state);
    this.list.update(state.row, { standing: state.standing, flagged: state.decision.flagged, caption: state.caption });
    const item = this.card.current;
    if (item?.row !== state.row || this.outbox.waits(state.row)) return;
    if (JSON.stringify(item.state) !== JSON.stringify(state)) this.card.refresh({ ...item, state });
  }

  private bulk(): void {
    this.act(async () => {
      await this.outbox.settled();
      if (!this.kinds.length) {
        toast("There are no edits in this list.");
        return;
      }
      bulkDialog(this.reviewer.author, this.filters.query(), this.kinds, this.list.length, (told, words) => {
        toast(`${words} U takes it back.`);
        this.act(() => this.take(told));
      });
    });
  }

  private export(): void {
    this.act(async () => {
      await this.outbox.settled();
      if (this.about) exportDialog(this.about);
    });
  }

  private search(): void {
    document.body.classList.add("listing");
    this.filters.search.focus();
  }

  private help(): void {
    showSheet(this.table);
  }

  private fail(error: unknown): void {
    toast(error instanceof Error ? error.message : String(error), "bad");
  }
}

void new ReviewPage().start();
