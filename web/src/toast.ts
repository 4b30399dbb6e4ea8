/** Short words to the user, said aloud by screen readers too. */

import { h } from "./dom";

const place = h("div", { class: "toasts", role: "status", "aria-live": "polite" });

document.body.append(place); // in good time: what is there first is what a screen reader listens to

export function toast(words: string, kind: "good" | "bad" = "good"): void {
  const note = h("div", { class: `toast ${kind}` }, words);
  place.replaceChildren(note);
  setTimeout(() => note.remove(), kind === "bad" ? 7000 : 3000);
}
