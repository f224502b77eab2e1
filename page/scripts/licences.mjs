// The licences of all that is built into the studio, as one text that ships beside it.
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const page = fileURLToPath(new URL("..", import.meta.url));
const lock = JSON.parse(readFileSync(join(page, "package-lock.json"), "utf8"));
const shipped = Object.keys(lock.packages).filter((name) => name && !lock.packages[name].dev && !lock.packages[name].optional);

const parts = shipped.sort().flatMap((name) => {
  const folder = join(page, name);
  if (!existsSync(folder)) throw new Error(`${name} is not installed. Run: npm ci`);
  const told = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  if (told.name.startsWith("@types/")) return []; // types alone are not built in
  const file = readdirSync(folder).find((one) => /^licen[sc]e/i.test(one));
  const text = file ? readFileSync(join(folder, file), "utf8").replaceAll("\r\n", "\n").trim() : `Licence: ${told.license}`;
  return [`${told.name} ${told.version} (${told.license})\n\n${text}\n`];
});
writeFileSync(join(page, "../src/sfumato/pages/studio/LICENCES.txt"), parts.join(`\n${"-".repeat(80)}\n\n`));
