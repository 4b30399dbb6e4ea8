/** One table of keys per page: what acts, and what the `?` sheet shows, can never differ. */

import { dialog } from "./dialog";
import { h } from "./dom";

export interface Key {
  /** As in `KeyboardEvent.key`; "Mod+" is Ctrl, or Command on a Mac. The first two are shown. */
  keys: string[];
  /** Shown instead, where the keys are a range. */
  shown?: string;
  does: string;
  group: string;
  /** Whether it goes on while the key is held down; a decision must not. */
  repeats?: boolean;
  run: (name: string) => void;
}

/** The digits that choose one of nine. */
export const DIGITS = { keys: Array.from("123456789"), shown: "1 … 9" };

const IS_MAC = /Mac|iPhone|iPad/.test(navigator.platform);

export function listen(table: () => Key[]): void {
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.isComposing || document.querySelector("dialog[open]")) return;
    const typing = isTyping(event.target);
    const name = nameOf(event);
    for (const key of table()) {
      if (!key.keys.includes(name)) continue;
      if (typing && !name.startsWith("Mod+")) return;
      if (typing && name === "Mod+z") return; // fields have an undo of their own
      if (isPressing(event.target) && (name === "Enter" || name === " ")) return; // a button does its own thing
      event.preventDefault();
      if (!event.repeat || key.repeats) key.run(name);
      return;
    }
  });
}

function nameOf(event: KeyboardEvent): string {
  const letter = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const shift = event.shiftKey && (event.key.length > 1 || letter !== letter.toUpperCase()) ? "Shift+" : "";
  const mod = event.ctrlKey || event.metaKey ? "Mod+" : "";
  return (event.altKey ? "Alt+" : "") + mod + shift + letter;
}

function isTyping(target: EventTarget | null): boolean {
  if (target instanceof HTMLInputElement) return !["range", "checkbox", "radio", "file", "button"].includes(target.type);
  return target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement;
}

function isPressing(target: EventTarget | null): boolean {
  return target instanceof HTMLButtonElement || target instanceof HTMLAnchorElement || target instanceof HTMLInputElement;
}

export function keyLabel(name: string): string {
  const words: Record<string, string> = {
    ArrowLeft: "←", ArrowRight: "→", ArrowUp: "↑", ArrowDown: "↓", " ": "Space", Escape: "Esc", Mod: IS_MAC ? "⌘" : "Ctrl",
  };
  return (name === " " ? [" "] : name.split("+").filter(Boolean))
    .map((part) => words[part] ?? (part.length === 1 ? part.toUpperCase() : part))
    .join(" + ") || "+";
}

export function showSheet(table: Key[]): void {
  const groups = grouped(table);
  const sheet = dialog(
    "Keyboard",
    h(
      "div",
      { class: "sheet" },
      [...groups].map(([group, keys]) =>
        h(
          "section",
          {},
          h("h3", {}, group),
          h(
            "dl",
            {},
            keys.flatMap((key) => [
              h("dt", {}, key.shown ? h("kbd", {}, key.shown) : key.keys.slice(0, 2).flatMap((name, at) => [at ? " or " : "", h("kbd", {}, keyLabel(name))])),
              h("dd", {}, key.does),
            ]),
          ),
        ),
      ),
    ),
  );
  sheet.showModal();
}

function grouped(table: Key[]): Map<string, Key[]> {
  const groups = new Map<string, Key[]>();
  for (const key of table) groups.set(key.group, [...(groups.get(key.group) ?? []), key]);
  return groups;
}
