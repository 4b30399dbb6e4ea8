import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { defineConfig, type Plugin } from "vite";

const root = import.meta.dirname;
const outDir = resolve(root, "../src/capedit/server/static");

/** Every file that the built pages are made of, in a fixed order. */
function sources(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory() ? sources(join(folder, entry.name)) : [join(folder, entry.name)],
  );
}

/** Leaves a hash of the sources beside the built files: a test tells when someone forgot to build. */
function stamp(): Plugin {
  return {
    name: "capedit-stamp",
    closeBundle() {
      const files = [join(root, "index.html"), join(root, "review.html"), ...sources(join(root, "src")), ...sources(join(root, "public"))];
      const digest = createHash("sha256");
      for (const file of files.map((file) => relative(root, file).replaceAll("\\", "/")).sort()) {
        digest.update(`${file}\0`);
        digest.update(readFileSync(join(root, file)));
      }
      writeFileSync(join(outDir, "sources.sha256"), `${digest.digest("hex")}\n`);
    },
  };
}

export default defineConfig({
  plugins: [stamp()],
  build: {
    outDir,
    emptyOutDir: true,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: "es2022",
    rollupOptions: { input: [join(root, "index.html"), join(root, "review.html")] },
  },
  server: { proxy: { "/api": { target: "http://127.0.0.1:8765", changeOrigin: true } } },
});
