// Copies the console's packages to pb_public/vendor as native modules. They name each other by package, which a browser
// cannot follow without an import map, and an import map would have to stand inline, which the security policy forbids: so
// the names become paths.
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";

const here = path.dirname(fileURLToPath(import.meta.url));
const target = path.join(here, "../../pb_public/vendor");

const modules = {
  "preact": "preact/dist/preact.module.js",
  "preact/hooks": "preact/hooks/dist/hooks.module.js",
  "@preact/signals-core": "@preact/signals-core/dist/signals-core.module.js",
  "@preact/signals": "@preact/signals/dist/signals.module.js",
  "htm": "htm/dist/htm.module.js",
  "uplot": "uplot/dist/uPlot.iife.min.js",
};
const styles = { "uplot.css": "uplot/dist/uPlot.min.css" };

const fileOf = (name) => `${name.replace("@", "").replaceAll("/", "-")}.js`;
const read = (file) => readFile(path.join(here, "node_modules", file), "utf8");

await rm(target, { recursive: true, force: true });
await mkdir(target, { recursive: true });
for (const [name, file] of Object.entries(modules)) {
  const source = (await read(file))
    .replace(/(\bfrom|\bimport)\s*"([^"./][^"]*)"/g, (whole, word, used) => (used in modules ? `${word}"./${fileOf(used)}"` : whole))
    .replace(/\/\/# sourceMappingURL=.*$/m, "");
  // The charting library is minified only as a script that leaves a variable behind.
  await writeFile(path.join(target, fileOf(name)), name === "uplot" ? `${source}\nexport default uPlot;\n` : source);
}
for (const [name, file] of Object.entries(styles)) {
  await writeFile(path.join(target, name), await read(file));
}
