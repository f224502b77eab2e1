// Writes beside the built files of each page what they were built from and what they are: `sources.json` with the
// digest of every source and of every built file. tests/pages reads it without Node. With --check it only compares.
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const page = fileURLToPath(new URL("..", import.meta.url));
const built = join(page, "..", "src", "sfumato", "pages");
const COMMON = ["package.json", "package-lock.json", "tsconfig.json", "vite.config.ts", "src/shared"];
const ROOM = { studio: [...COMMON, "src/studio"], report: [...COMMON, "src/report"] };

const slashed = (path) => path.replaceAll("\\", "/");
const digest = (path) => createHash("sha256").update(readFileSync(path)).digest("hex");

function files(path) {
  try {
    const inner = readdirSync(path, { withFileTypes: true });
    return inner.flatMap((one) => files(join(path, one.name)));
  } catch (error) {
    if (error.code !== "ENOTDIR") throw error;
    return [path];
  }
}

const listed = (base, paths) =>
  Object.fromEntries(
    paths
      .map((path) => [slashed(relative(base, path)), path])
      .sort(([one], [other]) => (one < other ? -1 : 1))
      .map(([name, path]) => [name, digest(path)]),
  );

let stale = false;
for (const [name, sources] of Object.entries(ROOM)) {
  const folder = join(built, name);
  const told = {
    sources: listed(page, sources.flatMap((one) => files(join(page, one)))),
    built: listed(folder, files(folder).filter((path) => !path.endsWith("sources.json"))),
  };
  const text = JSON.stringify(told, null, 1) + "\n";
  const place = join(folder, "sources.json");
  if (!process.argv.includes("--check")) writeFileSync(place, text);
  else if (readFileSync(place, "utf8") !== text) {
    console.error(`${name}: the built files are not what the sources make. Run: make page`);
    stale = true;
  }
}
process.exit(stale ? 1 : 0);
