/** Taking an edit away: as text, JSON, a picture, or the request that gave it. */

import { send } from "./api";
import type { Edit } from "./edit";
import { toast } from "./toast";

export async function copyText(text: string, what: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    toast(`${what} copied.`);
  } catch {
    toast("The browser did not allow copying.", "bad");
  }
}

async function drawn(edit: Edit): Promise<string> {
  return (await send("/picture", JSON.stringify(edit.trace), "application/json")).text();
}

export async function copyPicture(edit: Edit): Promise<void> {
  const png = drawn(edit).then(rasterise);
  try {
    await navigator.clipboard.write([new ClipboardItem({ "image/png": png })]);
    toast("Picture copied.");
  } catch {
    save(await png, "edit.png");
    toast("The browser did not allow copying a picture, so it was saved.");
  }
}

export async function savePicture(edit: Edit): Promise<void> {
  save(new Blob([await drawn(edit)], { type: "image/svg+xml" }), "edit.svg");
}

async function rasterise(svg: string): Promise<Blob> {
  const address = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
  try {
    const image = new Image();
    image.src = address;
    await image.decode();
    const canvas = document.createElement("canvas");
    canvas.width = 2 * image.naturalWidth;
    canvas.height = 2 * image.naturalHeight;
    canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((resolve, reject) =>
      canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("the picture could not be drawn"))), "image/png"),
    );
  } finally {
    URL.revokeObjectURL(address);
  }
}

export function save(blob: Blob, name: string): void {
  const address = URL.createObjectURL(blob);
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

export function curl(caption: string, fileName: string, knobs: Record<string, number>): string {
  const fields = Object.entries(knobs).map(([name, value]) => ` -F ${name}=${value}`);
  return `curl -F image=@${quoted(fileName)} -F caption=${quoted(caption)}${fields.join("")} ${location.origin}/api/v1/edit`;
}
