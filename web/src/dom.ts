/** Elements without a framework: what is never parsed as HTML can never be injected. */

type Child = Node | string | number | null | undefined | false;
type Props = Record<string, unknown>;

/** An element. Keys that begin with "on" are listeners, keys of the element are properties, the rest attributes. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  props: Props = {},
  ...children: (Child | Child[])[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value as EventListener);
    else if (key === "class") element.className = String(value);
    else if (key.includes("-") || key === "role" || key === "for" || !(key in element)) {
      element.setAttribute(key, value === true ? "" : String(value));
    } else (element as unknown as Props)[key] = value;
  }
  append(element, children.flat());
  return element;
}

function append(parent: Node, children: Child[]): void {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    parent.appendChild(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/** What a part of the page shows from now on. */
export function show(parent: Element, ...children: (Child | Child[])[]): void {
  const fragment = document.createDocumentFragment();
  append(fragment, children.flat());
  parent.replaceChildren(fragment);
}

const PATHS = {
  picture: "M4 5h16v14H4z M4 16l5-5 4 4 3-3 4 4 M15.5 9.5h.01",
  sun: "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8z M12 2v2 M12 20v2 M2 12h2 M20 12h2 M5 5l1.4 1.4 M17.6 17.6L19 19 M5 19l1.4-1.4 M17.6 6.4L19 5",
  moon: "M20 14.5A8 8 0 0 1 9.5 4a8 8 0 1 0 10.5 10.5z",
  auto: "M12 3a9 9 0 1 0 0 18z M12 3a9 9 0 0 1 0 18",
  help: "M9.2 9a2.9 2.9 0 1 1 4.2 2.6c-.9.5-1.4 1-1.4 2.1 M12 17.3h.01 M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18z",
  copy: "M9 9h11v11H9z M5 15H4V4h11v1",
  save: "M12 4v11 M7.5 11l4.5 4.5L16.5 11 M4 20h16",
  play: "M7 5l12 7-12 7z",
  reset: "M4 4v6h6 M4.6 14.5A8 8 0 1 0 6 6.5L4 10",
  check: "M5 12.5l4.5 4.5L19 7.5",
  cross: "M6 6l12 12 M18 6L6 18",
  pen: "M4 20l1-4L16 5l3 3L8 19z M13.5 7.5l3 3",
  skip: "M5 5l9 7-9 7z M18 5v14",
  flag: "M6 21V4 M6 4h11l-2.5 4L17 12H6",
  undo: "M8 5L4 9l4 4 M4 9h10a5.5 5.5 0 0 1 0 11h-3",
  redo: "M16 5l4 4-4 4 M20 9H10a5.5 5.5 0 0 0 0 11h3",
  list: "M8 6h12 M8 12h12 M8 18h12 M4 6h.01 M4 12h.01 M4 18h.01",
  layers: "M12 3l9 5-9 5-9-5z M3 13l9 5 9-5",
  person: "M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8z M4 20c1.5-4 5-5 8-5s6.500 1 8 5",
  up: "M6 15l6-6 6 6",
  down: "M6 9l6 6 6-6",
} as const;

/** A line icon. It says nothing to screen readers: its button has a label. */
export function icon(name: keyof typeof PATHS): SVGSVGElement {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", PATHS[name]);
  svg.appendChild(path);
  return svg;
}

export const percent = (p: number | null | undefined): string =>
  p === null || p === undefined ? "" : `${Math.round(100 * p)}%`;

/** Run at most once per frame, whatever calls. */
export function perFrame(run: () => void): () => void {
  let waiting = false;
  return () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      run();
    });
  };
}
