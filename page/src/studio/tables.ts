// A publication as the tables of its file, and the small changes that the page makes to them. What a table says is the
// library's business: nothing is checked here, and what is refused comes back with the name of its key.
export type Plain = string | number | boolean | Plain[] | { [key: string]: Plain };
export type Table = { [key: string]: Plain };

export interface Publication extends Table {
  domain: { [name: string]: Table };
}

export const BEGIN: Publication = {
  hide: 'move("500 m")',
  ask: "ranges()",
  epsilon: "1",
  domain: { place: { bounds: [-74.3, 40.5, -73.7, 40.95], shape: [64, 64], crs: "EPSG:4326" } },
};

/** The value at a path such as "domain.place.bounds". */
export function at(tables: Table, path: string): Plain | undefined {
  let found: Plain | undefined = tables;
  for (const key of path.split(".")) {
    if (typeof found !== "object" || found === null || Array.isArray(found)) return undefined;
    found = found[key];
  }
  return found;
}

/** The same tables with another value at a path; without it where the value is undefined or empty text. */
export function put(tables: Table, path: string, value: Plain | undefined): Table {
  const [key, ...rest] = path.split(".") as [string, ...string[]];
  const { [key]: old, ...others } = tables;
  if (rest.length) {
    const inner = typeof old === "object" && !Array.isArray(old) ? old : {};
    const changed = put(inner, rest.join("."), value);
    return inOrder(tables, key, Object.keys(changed).length || key === "domain" ? changed : undefined);
  }
  void others;
  return inOrder(tables, key, value === "" ? undefined : value);
}

function inOrder(tables: Table, key: string, value: Plain | undefined): Table {
  const known = Object.entries(tables).filter(([name]) => name !== key || value !== undefined);
  if (value === undefined) return Object.fromEntries(known.filter(([name]) => name !== key));
  if (key in tables) return Object.fromEntries(known.map(([name, old]) => [name, name === key ? value : old]));
  return { ...tables, [key]: value };
}

/** The factors of a domain, by what they are. */
export function factors(tables: Publication): { place: string | null; time: string | null; group: string | null; others: string[] } {
  const named = Object.entries(tables.domain ?? {});
  const find = (...keys: string[]) => named.find(([, one]) => keys.some((key) => key in one))?.[0] ?? null;
  const place = find("bounds", "cell", "h3") ?? null;
  const time = find("every", "cycle");
  const group = find("labels");
  return { place, time, group, others: named.map(([name]) => name).filter((name) => ![place, time, group].includes(name)) };
}

// --------------------------------------------------------------------------- what is hidden

export interface Hidden {
  /** How far the place moves: a number and "m", or a number in the axes' units. */
  move: { length: number; metres: boolean } | null;
  change: string[];
  times: { factor: string; length: string }[];
  whole: "anything" | "presence" | null;
}

const MOVE = /^move\(\s*(?:"(?<m>[0-9.]+) ?m"|"(?<km>[0-9.]+) ?km"|(?<own>[0-9.eE-]+))\s*(?:,\s*of\s*=\s*["']place["']\s*)?\)$/;
const TIME = /^move\(\s*"(?<length>[^"]+)"\s*,\s*of\s*=\s*["'](?<factor>\w+)["']\s*\)$/;
const CHANGE = /^change\(\s*["'](?<name>[^"']+)["']\s*\)$/;

/** A relation that the page's own controls can say; null for any other, which stays as it is written. */
export function hidden(text: string): Hidden | null {
  const found: Hidden = { move: null, change: [], times: [], whole: null };
  if (text.trim() === "anything()" || text.trim() === "presence()") return { ...found, whole: text.trim().slice(0, -2) as "anything" };
  for (const term of text.split("|").map((one) => one.trim())) {
    const move = MOVE.exec(term)?.groups;
    const time = TIME.exec(term)?.groups;
    const change = CHANGE.exec(term)?.groups;
    if (move && !found.move) {
      const length = move.m ?? move.own ?? String(Number(move.km) * 1000);
      found.move = { length: Number(length), metres: move.own === undefined };
    } else if (time) found.times.push({ factor: time.factor!, length: time.length! });
    else if (change) found.change.push(change.name!);
    else return null;
  }
  return found;
}

/** The same as text. */
export function hiding({ move, change, times, whole }: Hidden): string {
  if (whole) return `${whole}()`;
  const terms = move ? [move.metres ? `move("${move.length} m")` : `move(${move.length})`] : [];
  terms.push(...times.map(({ factor, length }) => `move("${length}", of="${factor}")`));
  terms.push(...change.map((name) => `change("${name}")`));
  return terms.join(" | ");
}

/** The question that fits the factors, in the words of a file: ranges where cells lie in an order, else single cells. */
export function question(tables: Publication, place: "ranges" | "histogram"): string {
  const named = Object.entries(tables.domain);
  const kind = (one: Table) => ("labels" in one || "h3" in one || "regions" in one ? "histogram" : "ranges");
  const asked = (name: string, one: Table) => (name === factors(tables).place && place === "histogram" ? "histogram" : kind(one));
  if (named.length === 1) return `${asked(...named[0]!)}()`;
  return `ask(${named.map(([name, one]) => `${name}=${asked(name, one)}()`).join(", ")})`;
}
