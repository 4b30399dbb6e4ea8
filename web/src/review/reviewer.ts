/** Who is at this page: decisions carry a name, and undo goes by the browser. */

import { h, icon, show } from "../dom";
import { askName } from "./dialogs";
import type { Author } from "./model";

const NAME = "capedit-reviewer";
const ID = "capedit-reviewer-id";

export class Reviewer {
  readonly button = h("button", { type: "button", class: "ghost name", onclick: () => void this.rename() });
  private name = "";

  get author(): Author {
    return { id: browserId(), name: this.name };
  }

  /** By the name of last time, or the one that is offered; else ask. */
  async introduce(offered: string): Promise<void> {
    const name = localStorage.getItem(NAME) ?? offered;
    if (name) this.call(name);
    else await this.rename();
  }

  private async rename(): Promise<void> {
    const name = await askName(this.name);
    localStorage.setItem(NAME, name);
    this.call(name);
  }

  private call(name: string): void {
    this.name = name;
    show(this.button, icon("person"), name);
    this.button.ariaLabel = `Reviewer: ${name}. Change the name`;
  }
}

function browserId(): string {
  let id = localStorage.getItem(ID);
  if (!id) {
    // Not `randomUUID`, which browsers keep from pages without TLS.
    id = Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
    localStorage.setItem(ID, id);
  }
  return id;
}
