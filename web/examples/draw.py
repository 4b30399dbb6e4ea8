"""Draw the example pictures of the playground: still lifes of our own, so that no one else's photographs are shipped.

    python web/examples/draw.py [NAME ...]        # needs Chromium and playwright; takes some minutes without a GPU

Writes `src/capedit/server/pictures/*.jpg` and their list, `examples.json`.
"""

import json
import shutil
import sys
from base64 import b64decode
from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

HERE = Path(__file__).parent
OUT = HERE.parents[1] / "src/capedit/server/pictures"
SIZE = (800, 600)
SCENES = {"donuts": 1, "fruit": 2, "sign": 4, "clock": 5, "coffee": 6, "flowers": 7}
"""As the shader numbers them."""
EXAMPLES = [
    ("coffee", "Coffee", "a glass of wine on a wooden table"),
    ("clock", "Clock", "a white refrigerator next to a brick wall"),
    ("fruit", "Fruit", "a bowl of carrots and green peppers on a table"),
    ("flowers", "Flowers", "a bowl of oranges on a table"),
    ("donuts", "Donuts", "three donuts on a white plate"),
]
"""In the order of the page. The last caption is right: it should be left alone. The sign can be drawn, too, but is not
shown: the model does not take its trees for trees."""

DRAW = """async ([source, scene, width, height, samples]) => {
  const canvas = document.createElement("canvas");
  canvas.width = width; canvas.height = height;
  const gl = canvas.getContext("webgl2", { preserveDrawingBuffer: true });
  const paint = document.createElement("canvas");
  paint.width = paint.height = 512;
  const pen = paint.getContext("2d");
  if (scene === 4) {
    pen.fillStyle = "#b5121b"; pen.fillRect(0, 0, 512, 512);
    pen.strokeStyle = "#fff"; pen.lineWidth = 20; pen.beginPath();
    for (let i = 0; i < 8; i++) {
      const a = Math.PI / 8 + i * Math.PI / 4, r = 232 / Math.cos(Math.PI / 8);
      pen.lineTo(256 + r * Math.cos(a), 256 + r * Math.sin(a));
    }
    pen.closePath(); pen.stroke();
    pen.fillStyle = "#fff"; pen.font = "bold 168px 'Liberation Sans Narrow', Arial"; pen.textAlign = "center";
    pen.textBaseline = "middle"; pen.fillText("STOP", 256, 262);
  } else {
    pen.fillStyle = "#f4f1e8"; pen.fillRect(0, 0, 512, 512);
    pen.fillStyle = pen.strokeStyle = "#151515"; pen.textAlign = "center"; pen.textBaseline = "middle";
    pen.font = "bold 52px 'Liberation Serif', serif";
    for (let i = 1; i <= 12; i++) {
      const a = i * Math.PI / 6 - Math.PI / 2;
      pen.fillText(String(i), 256 + 178 * Math.cos(a), 256 + 178 * Math.sin(a));
    }
    for (let i = 0; i < 60; i++) {
      const a = i * Math.PI / 30; pen.lineWidth = i % 5 ? 3 : 7; pen.beginPath();
      pen.moveTo(256 + 222 * Math.cos(a), 256 + 222 * Math.sin(a));
      pen.lineTo(256 + 236 * Math.cos(a), 256 + 236 * Math.sin(a)); pen.stroke();
    }
    pen.lineCap = "round";
    for (const [turn, length, wide] of [[10.15 / 12, 105, 15], [9 / 60, 165, 10]]) {
      const a = turn * 2 * Math.PI - Math.PI / 2; pen.lineWidth = wide; pen.beginPath(); pen.moveTo(256, 256);
      pen.lineTo(256 + length * Math.cos(a), 256 + length * Math.sin(a)); pen.stroke();
    }
    pen.beginPath(); pen.arc(256, 256, 14, 0, 7); pen.fill();
  }
  const shader = (kind, text) => {
    const made = gl.createShader(kind);
    gl.shaderSource(made, text); gl.compileShader(made);
    if (!gl.getShaderParameter(made, gl.COMPILE_STATUS)) throw new Error(gl.getShaderInfoLog(made));
    return made;
  };
  const head = `#define SCENE ${scene}\\n#define SAMPLES ${samples}\\n`;
  const program = gl.createProgram();
  gl.attachShader(program, shader(gl.VERTEX_SHADER, `#version 300 es
    void main() { vec2 p = vec2(gl_VertexID & 1, gl_VertexID >> 1) * 4.0 - 1.0; gl_Position = vec4(p, 0, 1); }`));
  const text = source.replace("#version 300 es\\n", "#version 300 es\\n" + head);
  gl.attachShader(program, shader(gl.FRAGMENT_SHADER, text));
  gl.linkProgram(program); gl.useProgram(program);
  gl.bindTexture(gl.TEXTURE_2D, gl.createTexture());
  gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA, gl.RGBA, gl.UNSIGNED_BYTE, paint);
  gl.generateMipmap(gl.TEXTURE_2D);
  gl.uniform2f(gl.getUniformLocation(program, "size"), width, height);
  gl.enable(gl.SCISSOR_TEST);
  for (let y = 0; y < height; y += 40) {  // in strips: a single long draw would be taken for a hang
    gl.scissor(0, y, width, 40);
    gl.drawArrays(gl.TRIANGLES, 0, 3);
    gl.finish();
    await new Promise((go) => setTimeout(go));
  }
  return canvas.toDataURL("image/png").split(",")[1];
}"""


def main() -> None:
    wanted = sys.argv[1:] or [name for name, _, _ in EXAMPLES]
    source = (HERE / "scene.glsl").read_text()
    OUT.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"),
            args=["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"],
        )
        page = browser.new_page()
        page.set_default_timeout(0)
        for name in wanted:
            drawn = page.evaluate(DRAW, [source, SCENES[name], *SIZE, 4])
            Image.open(BytesIO(b64decode(drawn))).convert("RGB").save(OUT / f"{name}.jpg", quality=88, optimize=True)
            print(name, (OUT / f"{name}.jpg").stat().st_size)
        browser.close()
    listed = [{"file": f"{name}.jpg", "title": title, "caption": caption} for name, title, caption in EXAMPLES]
    (OUT / "examples.json").write_text(json.dumps(listed, indent=1) + "\n")


if __name__ == "__main__":
    main()
