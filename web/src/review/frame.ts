/** What stands around the desk: the head of the page and the bar of verdicts. */

import { h, icon } from "../dom";

type Icon = Parameters<typeof icon>[0];

/** A small button of the head; on narrow pages only its icon is left. */
export function tool(name: Icon, text: string, key: string, run: () => void): HTMLButtonElement {
  return h(
    "button",
    { type: "button", class: "ghost tool", title: `${text} (${key})`, "aria-label": text, onclick: run },
    icon(name),
    h("span", { class: "tool-text" }, text),
  );
}

/** A button of the bar, with the key that does the same. */
export function verdict(name: Icon, text: string, key: string, kind: string, run: () => void): HTMLButtonElement {
  return h(
    "button",
    { type: "button", class: kind, "aria-keyshortcuts": key.toLowerCase(), onclick: run },
    icon(name),
    text,
    h("kbd", { "aria-hidden": "true" }, key),
  );
}

export function square(name: Icon, label: string, key: string, run: () => void): HTMLButtonElement {
  return h(
    "button",
    { type: "button", class: "ghost square", "aria-label": label, title: `${label} (${key})`, onclick: run },
    icon(name),
  );
}

/** The name of the program and what is being reviewed. */
export function mark(where: HTMLElement): HTMLElement {
  return h(
    "h1",
    {},
    h(
      "span",
      { class: "mark" },
      h("del", { "aria-hidden": "true" }, "cap"),
      h("ins", { "aria-hidden": "true" }, "edit"),
      h("span", { class: "visually-hidden" }, "capedit review"),
    ),
    where,
  );
}
