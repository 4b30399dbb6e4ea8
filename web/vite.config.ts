import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { defineConfig, type Plugin } from "vite";

const root = import.meta.dirname;
const outDir = resolve(root, "../src/capedit/server/static");

/** Every file that the built pages are made of; not what editors and desktops leave lying about. */
function sources(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return sources(path);
    return /\.(ts|css|html|svg)$/.test(entry.name) ? [path] : [];
  });
}

/** Leaves a hash of the sources beside the built files: a test tells when someone forgot to build. */
function stamp(): Plugin {
  return {
    name: "capedit-stamp",
    closeBundle() {
      const files = [join(root, "index.html"), join(root, "review.html"), ...sources(join(root, "src")), ...sources(join(root, "public"))];
      const digest = createHash("sha256");
      for (const file of files.map((file) => relative(root, file).replaceAll("\\", "/")).sort()) {
        // Whatever line ends the machine's checkout has.
        digest.update(`${file}\0${readFileSync(join(root, file), "utf8").replaceAll("\r\n", "\n")}`);
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
