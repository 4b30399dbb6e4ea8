/** Dialogs of the platform: focus stays inside, Escape closes, the page behind is inert. */

import { h, icon } from "./dom";

export function dialog(title: string, ...content: Node[]): HTMLDialogElement {
  const id = `dialog-${title.toLowerCase().replaceAll(/\W+/g, "-")}`;
  const box = h(
    "dialog",
    { "aria-labelledby": id },
    h(
      "form",
      { method: "dialog", class: "dialog-body" },
      h(
        "div",
        { class: "dialog-head" },
        h("h2", { id }, title),
        h("button", { type: "button", class: "ghost square", "aria-label": "Close", onclick: () => box.close() }, icon("cross")),
      ),
      ...content,
    ),
  );
  box.addEventListener("click", (event) => {
    if (event.target === box) box.close(); // the backdrop
  });
  box.addEventListener("close", () => box.remove());
  document.body.append(box);
  return box;
}
