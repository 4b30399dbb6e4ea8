/** Light, dark, or as the system has it. */

import { h, icon, show } from "./dom";

const CHOICES = ["auto", "light", "dark"] as const;
type Theme = (typeof CHOICES)[number];
const ICONS = { auto: "auto", light: "sun", dark: "moon" } as const;

let theme: Theme = read();
apply();

function read(): Theme {
  const kept = localStorage.getItem("capedit-theme");
  return CHOICES.find((choice) => choice === kept) ?? "auto";
}

function apply(): void {
  document.documentElement.dataset["theme"] = theme;
}

export function themeButton(): HTMLButtonElement {
  const button = h("button", { type: "button", class: "ghost square", onclick: turn });
  const draw = (): void => {
    show(button, icon(ICONS[theme]));
    button.ariaLabel = `Colours: ${theme}`;
    button.title = `Colours: ${theme}`;
  };
  function turn(): void {
    theme = CHOICES[(CHOICES.indexOf(theme) + 1) % CHOICES.length] ?? "auto";
    localStorage.setItem("capedit-theme", theme);
    apply();
    draw();
  }
  draw();
  return button;
}
