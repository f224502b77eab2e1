// What the page knows: one publication, the studio's answers about it, and which face is shown.
import { batch, computed, effect, signal } from "@preact/signals";
import { ask, latest, Refusal, type Trouble } from "./api";
import { at, BEGIN, put, type Plain, type Publication } from "./tables";

export interface Axis {
  name: string;
  cells: number;
  ordered: boolean;
  reads: string;
  names?: string[];
}
export interface GridPlace {
  kind: "grid";
  name: string;
  crs: string | null;
  degrees: boolean;
  x: number[];
  y: number[];
  axes: [string, string];
}
export interface CellPlace {
  kind: "cells";
  name: string;
  crs: string | null;
  degrees: boolean;
  what: string;
  count: number;
  bounds: [number, number, number, number];
  outlines: number[][][][][] | null;
  names: string[] | null;
}
export type Place = GridPlace | CellPlace;
export interface Domain {
  shape: number[];
  cells: number;
  place: Place | null;
  others: Axis[];
}
export interface Described {
  hidden: string;
  delta: { length: number; metres: boolean } | null;
  total_is_public: boolean;
  domain: Domain;
  toml: string;
  python: string;
  warnings: string[];
}
export interface Plan {
  mechanism_name: string;
  mechanism_in_words: string;
  ask_in_words: string;
  expected_error: number | null;
  typical_error: number | null;
  basis: string;
  worth: string;
  resolution_in_words: string;
  promise: string;
  scales: { factor: string; size: string; blocks: number[]; whole: boolean; typical: number }[];
  alternatives: { name: string; options: string; expected_error: number | null; reason: string }[];
  warnings: string[];
}
export interface Area {
  name: string;
  bounds: [number, number, number, number];
  geojson: GeoJSON.FeatureCollection;
}
export interface Start {
  version: string;
  folder: string;
  file: string | null;
  publication: Publication | null;
  trouble: string | null;
  data: string | null;
  listed: { data: string[]; releases: string[]; ledgers: string[]; maps: string[] };
  tiles: string | null;
  outlines: Area | null;
  jobs: { kind: string; file: string; running: boolean }[];
}
export interface Columns {
  columns: { name: string; kind: string | null }[];
  guess: { place: [string, string] | null; time: string | null; category: string | null; entity: string | null };
}

export const FACES = ["describe", "plan", "publish", "explore", "budget"] as const;
export type Face = (typeof FACES)[number];

const KEPT = "sfumato-publication";
const named = (text: string): Face => FACES.find((one) => one === text.replace("#", "")) ?? "describe";

export const start = signal<Start | null>(null);
export const face = signal<Face>(named(location.hash));
export const tables = signal<Publication>(BEGIN);
export const columns = signal<Columns | null>(null);
export const area = signal<Area | null>(null);
export const described = signal<Described | null>(null);
export const plan = signal<Plan | null>(null);
export const words = signal<{ promise: string; limits: string[] } | null>(null);
export const planning = signal(false);
export const trouble = signal<Trouble | null>(null);
export const toOpen = signal<string | null>(null);

/** What is wrong with a field, if that is what is wrong. */
export const wrong = (field: string): string | null => {
  const told = trouble.value;
  return told?.field === field ? told.message : null;
};

export const value = (path: string): Plain | undefined => at(tables.value, path);
export const text = (path: string): string => {
  const found = value(path);
  return found === undefined || typeof found === "object" ? "" : String(found);
};

/** Say something else, all over the page and in the file. */
export function say(...changes: [path: string, said: Plain | undefined][]): void {
  let told: Publication = tables.value;
  for (const [path, said] of changes) told = put(told, path, said) as Publication;
  tables.value = told;
}

/** What says where the mechanism is planned for: all but paths, account and output. */
const asked = computed(() => JSON.stringify(tables.value));

let planTimer = 0;
let wordsTimer = 0;

effect(() => {
  if (!start.value) return;
  sessionStorage.setItem(KEPT, asked.value);
  clearTimeout(planTimer);
  clearTimeout(wordsTimer);
  planTimer = window.setTimeout(refresh, 40);
  wordsTimer = window.setTimeout(refreshWords, 600);
});

async function refresh(): Promise<void> {
  const publication = tables.value;
  planning.value = true;
  try {
    const [told, made] = await Promise.all([latest<Described>("describe", { publication }), latest<Plan>("plan", { publication })]);
    if (tables.value !== publication) return;
    batch(() => {
      if (told) described.value = told;
      if (made) plan.value = made;
      trouble.value = null;
    });
  } catch (error) {
    if (tables.value === publication) trouble.value = troubleOf(error);
  } finally {
    if (tables.value === publication) planning.value = false;
  }
}

async function refreshWords(): Promise<void> {
  try {
    const told = await latest<{ promise: string; limits: string[] }>("words", { publication: tables.value });
    if (told) words.value = told;
  } catch {
    words.value = null; // what is wrong is said beside the field
  }
}

export const troubleOf = (error: unknown): Trouble =>
  error instanceof Refusal ? error.trouble : { kind: "Error", message: String(error), field: null };

/** The columns of the data, by name and type alone, and what follows from their names. */
export async function readColumns(): Promise<void> {
  const path = text("data.path");
  if (!path) {
    columns.value = null;
    return;
  }
  try {
    const told = await ask<Columns>("columns", { path });
    columns.value = told;
    const guess = told.guess;
    if (guess.place && !value("data.columns.x")) say(["data.columns.x", guess.place[0]], ["data.columns.y", guess.place[1]]);
    if (guess.entity && !value("data.entity")) say(["data.entity", guess.entity], ["max_per_entity", 1]);
  } catch (error) {
    columns.value = null;
    trouble.value = { ...troubleOf(error), field: "data.path" };
  }
}

export async function begin(): Promise<void> {
  const told = await ask<Start>("start");
  const kept = sessionStorage.getItem(KEPT);
  batch(() => {
    if (told.publication) tables.value = told.publication;
    else if (told.data) tables.value = { ...BEGIN, data: { path: told.data } };
    // What was said in this tab before a reload is gone on with, unless the studio was started for something else.
    if (kept && sessionStorage.getItem(`${KEPT}-for`) === `${told.file}`) tables.value = JSON.parse(kept) as Publication;
    sessionStorage.setItem(`${KEPT}-for`, `${told.file}`);
    area.value = told.outlines;
    start.value = told;
    if (told.trouble) trouble.value = { kind: "File", message: told.trouble, field: null };
  });
  await readColumns();
}

window.addEventListener("hashchange", () => (face.value = named(location.hash)));
