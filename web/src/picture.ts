/** The picture of the playground: drop, paste or choose one; heat maps are drawn over it. */

import { h, icon } from "./dom";
import { HeatMap } from "./heatmap";
import { toast } from "./toast";

export class PictureStage {
  readonly heat = new HeatMap();
  readonly element: HTMLElement;
  private readonly image = h("img", { alt: "", hidden: true });
  private readonly frame: HTMLElement;
  private readonly input: HTMLInputElement;
  private readonly invitation: HTMLElement;
  private address: string | null = null;

  constructor(private readonly onpicture: (file: Blob, name: string) => void) {
    this.input = h("input", {
      type: "file", accept: "image/*", id: "file", class: "visually-hidden", tabIndex: -1,
      "aria-hidden": "true",
      onchange: () => {
        const file = this.input.files?.[0];
        if (file) this.take(file);
        this.input.value = "";
      },
    });
    this.invitation = h(
      "div",
      { class: "invitation" },
      icon("picture"),
      h("p", {}, "Drop a picture here"),
      h("p", { class: "quiet" }, "or paste one, or"),
      h("button", { type: "button", class: "primary", onclick: () => this.choose() }, "Choose a file"),
    );
    this.frame = h("div", { class: "frame" }, this.image, this.heat.canvas);
    this.element = h(
      "figure",
      { class: "stage", "aria-label": "Picture" },
      this.frame,
      this.invitation,
      this.input,
      h("button", { type: "button", class: "other", hidden: true, onclick: () => this.choose() }, icon("picture"), "Other picture"),
    );
    this.listen();
  }

  choose(): void {
    this.input.click();
  }

  take(file: Blob, name = file instanceof File ? file.name : "picture"): void {
    if (file.type && !file.type.startsWith("image/")) {
      toast(`${name} is not a picture.`, "bad");
      return;
    }
    if (this.address) URL.revokeObjectURL(this.address);
    this.address = URL.createObjectURL(file);
    this.image.src = this.address;
    this.image.alt = `The picture: ${name}`;
    this.image.hidden = false;
    this.invitation.hidden = true;
    const other = this.element.querySelector<HTMLElement>(".other");
    if (other) other.hidden = false;
    this.heat.clear();
    this.image.onload = () => this.fit();
    this.onpicture(file, name);
  }

  /** The frame takes the picture's shape, so that the heat map covers it exactly. */
  private fit(): void {
    const { naturalWidth: width, naturalHeight: height } = this.image;
    if (width && height) {
      this.frame.style.setProperty("--ratio", String(width / height));
    }
  }

  private listen(): void {
    const stage = this.element;
    for (const name of ["dragenter", "dragover"]) {
      document.addEventListener(name, (event) => {
        event.preventDefault();
        stage.classList.add("over");
      });
    }
    for (const name of ["dragleave", "drop"]) document.addEventListener(name, () => stage.classList.remove("over"));
    document.addEventListener("drop", (event) => {
      event.preventDefault();
      const file = event.dataTransfer?.files[0];
      if (file) this.take(file);
      else if (event.dataTransfer?.types.includes("text/uri-list")) {
        toast("Drop the picture file itself: addresses are not fetched.", "bad");
      }
    });
    document.addEventListener("paste", (event) => {
      const file = [...(event.clipboardData?.files ?? [])].find((one) => one.type.startsWith("image/"));
      if (file) {
        event.preventDefault();
        this.take(file, "pasted picture");
      }
    });
  }
}
