/** Where the model looks, laid over the picture. */

export interface Gaze {
  words: string[];
  boxes: [number, number, number, number][];
  weights: number[][];
}

/** Below this weight no place can be said to speak for a word. */
const FAINT = 0.35;
const SIDE = 56;

export class HeatMap {
  readonly canvas = document.createElement("canvas");

  constructor() {
    this.canvas.className = "heat";
    this.canvas.width = this.canvas.height = SIDE;
    this.canvas.setAttribute("aria-hidden", "true");
  }

  clear(): void {
    this.canvas.classList.remove("lit");
  }

  /** Draw the regions of one word; false if none of them matters. */
  draw(gaze: Gaze, word: number): boolean {
    const weights = gaze.weights[word] ?? [];
    const most = Math.max(...weights, 0);
    const context = this.canvas.getContext("2d");
    if (most < FAINT || !context) {
      this.clear();
      return false;
    }
    const image = context.createImageData(SIDE, SIDE);
    for (let y = 0; y < SIDE; y++) {
      for (let x = 0; x < SIDE; x++) {
        const heat = heatAt((x + 0.5) / SIDE, (y + 0.5) / SIDE, gaze.boxes, weights) / most;
        const at = 4 * (y * SIDE + x);
        image.data[at] = 255;
        image.data[at + 1] = Math.round(210 - 170 * heat);
        image.data[at + 2] = Math.round(60 - 40 * heat);
        image.data[at + 3] = Math.round(190 * Math.max(0, heat - 0.15) ** 0.9);
      }
    }
    context.putImageData(image, 0, 0);
    this.canvas.classList.add("lit");
    return true;
  }
}

/** A smooth field through the centres of the regions: the mean of their weights, the near ones counting most. */
function heatAt(x: number, y: number, boxes: Gaze["boxes"], weights: number[]): number {
  let sum = 0;
  let total = 0;
  for (const [at, [left, top, right, bottom]] of boxes.entries()) {
    const width = right - left;
    const height = bottom - top;
    const near = Math.exp(-2 * (((x - (left + right) / 2) / width) ** 2 + ((y - (top + bottom) / 2) / height) ** 2));
    sum += near * (weights[at] ?? 0);
    total += near;
  }
  return total > 1e-9 ? sum / total : 0;
}
