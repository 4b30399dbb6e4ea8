/** Words with what became of them. */

import { h, percent } from "./dom";
import { spoken, type Operation } from "./edit";

const TAGS = { KEEP: "span", DELETE: "del", ADD: "ins" } as const;

/** A word as text: struck if deleted, lit if added, with its probability where it changed. */
export function word(operation: Operation): HTMLElement {
  const changed = operation.op !== "KEEP";
  return h(
    "span",
    { class: `word ${operation.op.toLowerCase()}` },
    h(TAGS[operation.op], {}, operation.token),
    changed && operation.probability !== null ? h("small", { class: "sure" }, percent(operation.probability)) : null,
  );
}

/**
 * Words to walk over with the arrow keys; one of them is in the tab order.
 * `onpoint` is called with the place of the word that the mouse or the focus is on, or null.
 */
export function wordLine(operations: Operation[], label: string, onpoint: (at: number | null) => void): HTMLElement {
  const buttons = operations.map((operation, at) =>
    h(
      "button",
      {
        type: "button",
        class: `word ${operation.op.toLowerCase()}`,
        "aria-label": spoken(operation),
        tabIndex: at === 0 ? 0 : -1,
        onmouseenter: () => onpoint(at),
        onmouseleave: () => onpoint(null),
        onfocus: () => onpoint(at),
        onblur: () => onpoint(null),
      },
      ...word(operation).childNodes,
    ),
  );
  const line = h("div", { class: "line", role: "toolbar", "aria-label": label, "aria-orientation": "horizontal" }, ...spaced(buttons));
  line.addEventListener("keydown", (event) => {
    const at = buttons.indexOf(document.activeElement as HTMLButtonElement);
    const steps: Record<string, number> = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: buttons.length - 1 };
    const to = buttons[steps[event.key] ?? -1];
    if (at < 0 || !to) return;
    event.preventDefault();
    for (const button of buttons) button.tabIndex = button === to ? 0 : -1;
    to.focus();
  });
  return line;
}

/** Blanks between words, for those who select and copy. */
function spaced(elements: HTMLElement[]): (HTMLElement | string)[] {
  return elements.flatMap((element, at) => (at ? [" ", element] : [element]));
}

export function textLine(operations: Operation[]): HTMLElement {
  return h("span", { class: "line" }, ...spaced(operations.map(word)));
}
