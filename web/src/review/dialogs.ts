/** Bulk decisions, export, and the reviewer's name. */

import { post } from "../api";
import { dialog } from "../dialog";
import { h, percent, show } from "../dom";
import { toast } from "../toast";
import { kindName, type About, type Author, type Bulk, type Kind, type News, type Query } from "./model";

const count = (n: number, one: string, many = `${one}s`): string => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;

/** One verdict for all edits of a kind, seen before it is given. */
export function bulkDialog(
  author: Author, query: Query, kinds: Kind[], among: number, done: (told: News, words: string) => void,
): void {
  const kind = h(
    "select",
    { id: "bulk-kind", onchange: preview },
    kinds.map((one, at) => h("option", { value: String(at) }, `${kindName(one)}  (${one.count})`)),
    h("option", { value: "any" }, "every edit"),
  );
  const verdict = h("select", { id: "bulk-verdict", onchange: preview }, h("option", { value: "accept" }, "Accept"), h("option", { value: "reject" }, "Reject"));
  const least = h("input", { type: "number", id: "bulk-least", min: "0", max: "100", value: "90", oninput: preview });
  const words = h("p", { class: "bulk-words", role: "status" });
  const samples = h("ul", { class: "samples" });
  const apply = h("button", { type: "submit", class: "primary" }, "Apply");
  const box = dialog(
    "Decide on many at once",
    h(
      "div",
      { class: "bulk-form" },
      h("div", {}, h("label", { for: "bulk-verdict" }, "Verdict"), verdict),
      h("div", {}, h("label", { for: "bulk-kind" }, "All edits"), kind),
      h("div", {}, h("label", { for: "bulk-least" }, "Sure at least, %"), least),
    ),
    h("p", { class: "quiet" }, `Among the ${count(among, "caption")} of the list. What people have decided stays as it is.`),
    words,
    samples,
    h("div", { class: "row end" }, h("button", { type: "button", onclick: () => box.close() }, "Cancel"), apply),
  );
  let latest = 0;

  function wish(previewed: boolean): unknown {
    const chosen = kinds[Number(kind.value)];
    return {
      author, query, verdict: verdict.value, preview: previewed,
      min_probability: Math.min(100, Math.max(0, Number(least.value))) / 100,
      ...(kind.value === "any" ? { any_edit: true } : { deleted: chosen?.deleted ?? null, added: chosen?.added ?? null }),
    };
  }

  function told(bulk: Bulk): string {
    const verb = verdict.value === "accept" ? "Accepts" : "Rejects";
    const before = bulk.decided_before ? ` ${count(bulk.decided_before, "edit is", "edits are")} decided already.` : "";
    return bulk.units ? `${verb} ${count(bulk.units, "edit")} in ${count(bulk.items, "caption")}.${before}` : `Nothing to do.${before}`;
  }

  function preview(): void {
    const number = ++latest;
    apply.disabled = true;
    post<Bulk>("/review/bulk", wish(true)).then(
      (bulk) => {
        if (number !== latest) return;
        words.textContent = told(bulk);
        apply.disabled = bulk.units === 0;
        show(
          samples,
          bulk.samples.map((sample) =>
            h("li", {}, h("span", { class: "quiet" }, `#${sample.row} ${percent(sample.probability)}`), h("span", {}, sample.original), h("span", { class: "after" }, sample.caption)),
          ),
        );
      },
      (error: unknown) => {
        if (number === latest) words.textContent = error instanceof Error ? error.message : String(error);
      },
    );
  }

  box.querySelector("form")?.addEventListener("submit", (event) => {
    event.preventDefault();
    apply.disabled = true;
    post<Bulk>("/review/bulk", wish(false)).then(
      (bulk) => {
        box.close();
        if (bulk.told) done(bulk.told, told(bulk).replace("Accepts", "Accepted").replace("Rejects", "Rejected"));
      },
      (error: unknown) => toast(error instanceof Error ? error.message : String(error), "bad"),
    );
  });
  box.showModal();
  preview();
}

/** Write what was decided. */
export function exportDialog(about: About): void {
  const what = h("select", { id: "export-what" }, h("option", { value: "captions" }, "the dataset as decided"), h("option", { value: "pairs" }, "decisions as training pairs"));
  const format = h("select", { id: "export-format" }, about.formats.map((name) => h("option", { value: name, selected: name === about.format }, name)));
  const undecided = h(
    "select",
    { id: "export-undecided" },
    h("option", { value: "output" }, "as in the output of the run"),
    h("option", { value: "original" }, "as before the run"),
    h("option", { value: "refined" }, "as the editor would have them"),
    h("option", { value: "drop" }, "left out"),
  );
  const result = h("p", { role: "status", class: "export-result" });
  const go = h("button", { type: "submit", class: "primary" }, "Export");
  const rest = h("div", {}, h("label", { for: "export-undecided" }, "Captions that nobody has decided on"), undecided);
  what.addEventListener("change", () => (rest.hidden = what.value === "pairs"));
  const box = dialog(
    "Export",
    h("div", {}, h("label", { for: "export-what" }, "What"), what),
    h("div", {}, h("label", { for: "export-format" }, "Format"), format),
    rest,
    result,
    h("div", { class: "row end" }, go),
  );
  box.querySelector("form")?.addEventListener("submit", (event) => {
    event.preventDefault();
    go.disabled = true;
    show(result, "writing …");
    post<{ path: string; count: number; problems: string[]; download: string | null }>("/review/export", {
      what: what.value, format: format.value, undecided: undecided.value,
    })
      .then((told) =>
        show(
          result,
          `${count(told.count, "caption")} written to `,
          h("code", {}, told.path),
          told.download ? " " : null,
          told.download ? h("a", { href: told.download, download: "" }, "Download") : null,
          told.problems.length ? h("span", { class: "error" }, ` ${count(told.problems.length, "problem")}: ${told.problems[0]}`) : null,
        ),
      )
      .catch((error: unknown) => show(result, h("span", { class: "error" }, error instanceof Error ? error.message : String(error))))
      .finally(() => (go.disabled = false));
  });
  box.showModal();
}

/** Ask who is reviewing; decisions carry the name. */
export function askName(name: string): Promise<string> {
  return new Promise((resolve) => {
    const field = h("input", { type: "text", id: "reviewer", maxLength: 80, required: true, value: name, autocomplete: "name" });
    const box = dialog(
      "Who reviews?",
      h("p", { class: "quiet" }, "Your decisions carry this name, so that others see whose they are."),
      h("label", { for: "reviewer" }, "Name"),
      field,
      h("div", { class: "row end" }, h("button", { type: "submit", class: "primary" }, "Go")),
    );
    box.querySelector("form")?.addEventListener("submit", (event) => {
      event.preventDefault();
      if (field.value.trim()) box.close();
    });
    box.addEventListener("close", () => resolve(field.value.trim() || name || "reviewer"));
    box.showModal();
    field.select();
  });
}
