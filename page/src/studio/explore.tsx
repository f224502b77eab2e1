// Reading a release: estimates and how sure they are, areas that are drawn and answers that hold, one moment after the
// other, and two releases beside each other.
import { signal } from "@preact/signals";
import { useEffect, useMemo, useState } from "preact/hooks";
import { ask, latest, unpacked } from "./api";
import { Curve } from "./curve";
import { Legend } from "./legend";
import type { Corners, Drawing, Shown } from "./map";
import { Check, Choice, Code, Input, Note, number, Panel, PlaceView } from "./parts";
import { quantile, Words } from "./plan";
import { area, start, toOpen, troubleOf, type Domain } from "./state";

interface Release {
  id: string;
  created: string;
  private: boolean;
  epsilon: string;
  promise: string;
  mechanism_in_words: string;
  ask_in_words: string;
  total: number;
  total_is_public: boolean;
  toml: string | null;
  domain: Domain;
}
interface Packed {
  value: string;
  stderr: string;
  low: string;
  high: string;
  along: string | null;
  elsewhere: Record<string, number | null> | null;
  suppressed?: string;
}
interface Cells {
  value: Float32Array;
  stderr: Float32Array;
  low: Float32Array;
  high: Float32Array;
  along: string | null;
  elsewhere: Record<string, number | null> | null;
  suppressed: string | null;
}
interface Answer {
  value: number | null;
  stderr: number | null;
  low: number | null;
  high: number | null;
  confidence: number;
  cut_share: number;
  exact: boolean;
  python: string;
}
interface Asked {
  number: number;
  kind: "rectangle" | "polygon";
  corners: Corners;
}

const path = signal("");
const other = signal("");
const release = signal<Release | null>(null);
const second = signal<Release | null>(null);
const opening = signal(false);
const said = signal<{ promise: string; limits: string[] } | null>(null);
const cells = signal<Cells | null>(null);
const cellsOfSecond = signal<Cells | null>(null);
const refused = signal<string | null>(null);
const view = signal<"estimate" | "uncertainty" | "both">("estimate");
const nonnegative = signal(false);
const below = signal("");
const changed = signal<Cells | null>(null);
const together = signal<"beside" | "change">("beside");
const at = signal<Record<string, number>>({});
const drawing = signal<Drawing>(null);
const areas = signal<Asked[]>([]);
const answers = signal<Record<string, Answer | string>>({});
const chosen = signal<number | null>(null);
const hovered = signal<{ cell: number; at: [number, number] } | null>(null);

const estimate = () => (nonnegative.value ? "nonnegative" : "plain");

async function open(which: string, into: { value: Release | null }): Promise<void> {
  into.value = null;
  refused.value = null;
  if (!which) return;
  opening.value = true;
  try {
    into.value = await ask<Release>("release", { path: which });
  } catch (error) {
    refused.value = troubleOf(error).message;
  } finally {
    opening.value = false;
  }
}

async function read(which: string, into: { value: Cells | null }, kind: string): Promise<void> {
  try {
    const told = await latest<Packed>("cells", { path: which, at: at.value, estimate: estimate(), ...(below.value ? { below: Number(below.value) } : {}) }, kind);
    if (told) into.value = { value: unpacked(told.value), stderr: unpacked(told.stderr), low: unpacked(told.low), high: unpacked(told.high), along: told.along, elsewhere: told.elsewhere, suppressed: told.suppressed ?? null };
  } catch (error) {
    into.value = null;
    refused.value = troubleOf(error).message;
  }
}

async function compare(): Promise<void> {
  try {
    const told = await latest<Packed>("changes", { path: path.value, old: other.value, at: at.value });
    if (told) changed.value = { value: unpacked(told.value), stderr: unpacked(told.stderr), low: unpacked(told.low), high: unpacked(told.high), along: null, elsewhere: null, suppressed: null };
  } catch (error) {
    changed.value = null;
    refused.value = troubleOf(error).message;
  }
}

async function answer(asked: Asked): Promise<void> {
  const question = asked.kind === "rectangle" ? { rectangle: [...asked.corners[0]!, ...asked.corners[2]!] } : { polygon: asked.corners };
  for (const [name, there] of [[path.value, release.value], [other.value, second.value]] as const) {
    if (!there) continue;
    const key = `${asked.number} ${name}`;
    try {
      const told = await ask<Answer>("answer", { path: name, at: at.value, estimate: estimate(), ...question });
      answers.value = { ...answers.value, [key]: told };
    } catch (error) {
      answers.value = { ...answers.value, [key]: troubleOf(error).message };
    }
  }
  if (!release.value || !second.value) return;
  const key = `${asked.number} change`;
  try {
    const told = await ask<Answer>("change", { path: path.value, old: other.value, at: at.value, ...question });
    answers.value = { ...answers.value, [key]: { ...told, confidence: 0.95, cut_share: 0, exact: false, python: "" } };
  } catch (error) {
    answers.value = { ...answers.value, [key]: troubleOf(error).message };
  }
}

function add(kind: "rectangle" | "polygon", corners: Corners): void {
  const asked = { number: (areas.value.at(-1)?.number ?? 0) + 1, kind, corners };
  areas.value = [...areas.value, asked];
  chosen.value = asked.number;
  drawing.value = null;
  void answer(asked);
}

export function Explore() {
  useEffect(() => {
    if (toOpen.value) {
      path.value = toOpen.value;
      toOpen.value = null;
    } else if (!path.value && start.value?.listed.releases.length === 1) path.value = start.value.listed.releases[0]!;
  }, []);
  useEffect(() => {
    areas.value = [];
    answers.value = {};
    at.value = {};
    cells.value = null;
    said.value = null;
    void open(path.value, release).then(async () => {
      if (release.value) said.value = await ask("release_words", { path: path.value });
    });
  }, [path.value]);
  useEffect(() => {
    cellsOfSecond.value = null;
    void open(other.value, second);
  }, [other.value]);
  useEffect(() => {
    if (release.value) void read(path.value, cells, "cells");
  }, [release.value, at.value, nonnegative.value, below.value]);
  useEffect(() => {
    changed.value = null;
    if (release.value && second.value && together.value === "change") void compare();
  }, [release.value, second.value, at.value, together.value]);
  useEffect(() => {
    if (second.value) void read(other.value, cellsOfSecond, "cells of the second");
  }, [second.value, at.value, nonnegative.value, below.value]);
  useEffect(() => {
    for (const one of areas.value) void answer(one);
  }, [at.value, nonnegative.value, second.value]);

  const there = release.value;
  const shown = cells.value;
  const beside = cellsOfSecond.value;
  const place = there?.domain.place ?? null;
  const high = useMemo(() => {
    const tops = [shown, beside].filter((one): one is Cells => one !== null).map((one) => quantile(one.value, 0.995));
    return Math.max(...tops, 1e-9);
  }, [shown, beside]);
  const estimates = useMemo<Shown | null>(() => shown && { values: shown.value, low: 0, high, colours: "viridis" }, [shown, high]);
  const unsure = useMemo<Shown | null>(() => {
    if (!shown) return null;
    const most = quantile(shown.stderr, 1);
    return { values: shown.stderr, low: 0, high: most || 1, colours: "cividis" };
  }, [shown]);
  const compared = useMemo<Shown | null>(() => beside && { values: beside.value, low: 0, high, colours: "viridis" }, [beside, high]);
  const change = changed.value;
  const differences = useMemo<Shown | null>(() => {
    if (!change) return null;
    const most = quantile(change.value.map(Math.abs), 0.995) || 1;
    return { values: change.value, low: -most, high: most, colours: "difference" };
  }, [change]);
  const both = together.value === "change" && second.value !== null;
  const drawn = useMemo(() => areas.value.map((one) => ({ corners: one.corners, chosen: one.number === chosen.value })), [areas.value, chosen.value]);
  const map = (label: string, values: Shown | null, title: string, capped = true) => (
    <figure class="drawn" key={label}>
      <figcaption>{label}</figcaption>
      <PlaceView
        label={label}
        place={place}
        values={values}
        area={area.value}
        drawing={drawing.value}
        areas={drawn}
        hover={(cell, there) => (hovered.value = cell === null ? null : { cell, at: there })}
        drawn={add}
      />
      {values && <Legend shown={values} title={title} capped={capped} />}
    </figure>
  );
  return (
    <div class="face">
      <div class="side">
        <Panel title="Release">
          <Input label="File" value={path.value} list={start.value?.listed.releases ?? []} placeholder="visits.sfumato" said={(one) => (path.value = one)} trouble={refused.value} />
          {there && (
            <>
              {!there.private && <Note kind="bad">Made with seeded randomness: NOT PRIVATE. Do not publish it.</Note>}
              <dl class="facts">
                <dt>Records</dt>
                <dd>
                  {number(there.total, 4)} {there.total_is_public ? "(exact)" : "(estimated)"}
                </dd>
                <dt>ε</dt>
                <dd>{there.epsilon}</dd>
                <dt>Made</dt>
                <dd>{there.created.slice(0, 16).replace("T", " ")}</dd>
                <dt>By</dt>
                <dd>{there.mechanism_in_words}</dd>
              </dl>
            </>
          )}
        </Panel>
        {there && (
          <Panel title="What is shown">
            <Choice
              label="Map of"
              value={view.value}
              options={[["estimate", "Estimates"], ["uncertainty", "Uncertainty"], ["both", "Both"]]}
              said={(one) => (view.value = one)}
            />
            <Check
              label="No negative numbers"
              checked={nonnegative.value}
              hint="Nearer to the truth where hardly anybody is; intervals stay."
              said={(on) => (nonnegative.value = on)}
            />
            <Input
              label="Leave out figures below"
              type="number"
              value={below.value}
              placeholder="show all"
              said={(one) => (below.value = one)}
              hint="Decided by released figures alone; intervals then hold for the figures that are shown."
            />
            {there.domain.others
              .filter((axis) => axis.name !== shown?.along)
              .map((axis) => (
                <Moment key={axis.name} name={axis.name} cells={axis.cells} names={axis.names ?? null} />
              ))}
          </Panel>
        )}
        {there && place && <Areas />}
        {there && (
          <Panel title="Beside another release" open={other.value !== ""}>
            <Input label="File of the other" value={other.value} list={(start.value?.listed.releases ?? []).filter((one) => one !== path.value)} said={(one) => (other.value = one)} />
            {second.value && place && (
              <Choice label="Show" value={together.value} options={[["beside", "Side by side"], ["change", "What changed"]]} said={(one) => (together.value = one)} />
            )}
            {second.value && place && JSON.stringify(second.value.domain.place) !== JSON.stringify(place) && <Note kind="warning">It has other cells, so that its map cannot be drawn beside this one. Areas are answered by both.</Note>}
          </Panel>
        )}
      </div>
      <div class="stage">
        {!there && opening.value && <p class="empty" role="status">Opening {path.value} …</p>}
        {!there && !opening.value && !refused.value && <p class="empty">Name a release to open it. Nothing private is in it, and nothing is charged for reading.</p>}
        {there && place && (
          <>
            <div class={view.value === "both" || compared || both ? "maps two" : "maps"}>
              {view.value !== "uncertainty" && map(compared ? path.value : "Estimated records", estimates, "records a cell")}
              {view.value !== "estimate" && map("Uncertainty: the standard error of every cell", unsure, "records", false)}
              {both && differences && map(`Change from ${other.value} to ${path.value}`, differences, "records a cell")}
              {!both && compared && JSON.stringify(second.value?.domain.place) === JSON.stringify(place) && map(other.value, compared, "records a cell")}
            </div>
            <Readout />
            {shown?.suppressed && <Note>{shown.suppressed}</Note>}
          </>
        )}
        {there && !place && shown && <Line domain={there.domain} shown={shown} />}
        {there && (
          <section class="promise" aria-label="The promise">
            <Words promise={there.promise} told={said.value} />
          </section>
        )}
      </div>
    </div>
  );
}

function Moment({ name, cells: many, names }: { name: string; cells: number; names: string[] | null }) {
  const held = at.value[name];
  const turn = (cell: number | null) => {
    const { [name]: _, ...rest } = at.value;
    at.value = cell === null ? rest : { ...rest, [name]: cell };
  };
  return (
    <div class="moment">
      <Check label={`All of ${name} together`} checked={held === undefined} said={(on) => turn(on ? null : 0)} />
      {held !== undefined && (
        <label class="slide">
          <span>
            {name}: <b>{names?.[held] ?? held}</b>
          </span>
          <input type="range" min={0} max={many - 1} step={1} value={held} aria-valuetext={names?.[held] ?? String(held)} onInput={(event) => turn(Number(event.currentTarget.value))} />
        </label>
      )}
    </div>
  );
}

function Areas() {
  const [typed, setTyped] = useState("");
  return (
    <Panel title="Areas">
      <div class="buttons">
        <button type="button" aria-pressed={drawing.value === "rectangle"} onClick={() => (drawing.value = drawing.value === "rectangle" ? null : "rectangle")}>
          Rectangle
        </button>
        <button type="button" aria-pressed={drawing.value === "polygon"} onClick={() => (drawing.value = drawing.value === "polygon" ? null : "polygon")}>
          Polygon
        </button>
      </div>
      <p class="hint" aria-live="polite">
        {drawing.value === "rectangle"
          ? "Drag on the map; or press Space at two corners, moving it with the arrow keys. Esc begins anew."
          : drawing.value === "polygon"
            ? "Click the corners (or press Space), then Enter or a double click. Esc begins anew."
            : "Draw an area on the map, or type a rectangle."}
      </p>
      <Input
        label="A rectangle: west, south, east, north"
        value={typed}
        said={(one) => {
          setTyped(one);
          const ends = one.split(/[,\s]+/).filter(Boolean).map(Number);
          if (ends.length !== 4 || !ends.every(Number.isFinite)) return;
          const [x0, y0, x1, y1] = ends as [number, number, number, number];
          add("rectangle", [[x0, y0], [x1, y0], [x1, y1], [x0, y1]]);
        }}
      />
      <ol class="answers">
        {areas.value.map((one) => (
          <li key={one.number} class={one.number === chosen.value ? "chosen" : ""}>
            <button type="button" class="quiet" aria-pressed={one.number === chosen.value} onClick={() => (chosen.value = one.number)}>
              {one.kind === "rectangle" ? "Rectangle" : "Polygon"} {one.number}
            </button>
            <button
              type="button"
              class="quiet"
              aria-label={`Remove ${one.kind} ${one.number}`}
              onClick={() => (areas.value = areas.value.filter((two) => two.number !== one.number))}
            >
              Remove
            </button>
            <Said name={path.value} asked={one} head={second.value ? path.value : null} />
            {second.value && <Said name={other.value} asked={one} head={other.value} />}
            {second.value && <Said name="change" asked={one} head="Change" />}
          </li>
        ))}
      </ol>
    </Panel>
  );
}

function Said({ name, asked, head }: { name: string; asked: Asked; head: string | null }) {
  const told = answers.value[`${asked.number} ${name}`];
  if (told === undefined) return <p class="hint">…</p>;
  if (typeof told === "string") return <p class="trouble">{told}</p>;
  return (
    <>
      <p class="answer">
        {head && <span class="from">{head}</span>}
        <b>{number(told.value, 4)}</b>
        {told.exact ? " exactly" : told.low === null ? "; no interval is known" : `, between ${number(told.low, 4)} and ${number(told.high, 4)}`}
      </p>
      <p class="hint">
        {told.low !== null && !told.exact && `${name === "change" ? "The change of the records" : "The records as counted"} ${name === "change" ? "is" : "are"} in there ${Math.round(told.confidence * 100)} times in 100.`}
        {told.cut_share > 0 && ` ${Math.max(1, Math.round(told.cut_share * 100))} % of the estimate lies in cells that the outline cuts.`}
      </p>
      {asked.number === chosen.value && told.python && <Code text={told.python} label={`the question about ${asked.kind} ${asked.number} in Python`} />}
    </>
  );
}

function Readout() {
  const there = hovered.value;
  const shown = cells.value;
  const place = release.value?.domain.place;
  if (!there || !shown) return <p class="readout">Point at a cell, or move the map with the arrow keys.</p>;
  const name = place?.kind === "cells" ? place.names?.[there.cell] : there.at.map((one) => number(one, 6)).join(", ");
  const [value, low, high] = [shown.value[there.cell], shown.low[there.cell], shown.high[there.cell]];
  const change = changed.value;
  if (value !== undefined && Number.isNaN(value))
    return (
      <p class="readout">
        <span>{name}</span> left out
      </p>
    );
  const second = cellsOfSecond.value?.value[there.cell];
  return (
    <p class="readout">
      <span>{name}</span> <b>{number(value)}</b> records, between {number(low)} and {number(high)}
      {change && (
        <span>
          {" "}
          · change {number(change.value[there.cell])}, between {number(change.low[there.cell])} and {number(change.high[there.cell])}
        </span>
      )}
      {!change && second !== undefined && <span> · the other: {number(second)}</span>}
    </p>
  );
}

function Line({ domain, shown }: { domain: Domain; shown: Cells }) {
  const axis = domain.others.find((one) => one.name === shown.along);
  const names = axis?.names ?? Array.from(shown.value, (_, i) => String(i));
  return (
    <>
      <Curve names={names} value={shown.value} low={shown.low} high={shown.high} label={`Estimated records by ${shown.along}, with 95 % intervals`} />
      <table class="figures">
        <caption>Estimates by {shown.along}</caption>
        <thead>
          <tr>
            <th scope="col">{shown.along}</th>
            <th scope="col" class="number">estimate</th>
            <th scope="col" class="number">between</th>
          </tr>
        </thead>
        <tbody>
          {names.slice(0, 200).map((name, i) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td class="number">{number(shown.value[i])}</td>
              <td class="number">
                {number(shown.low[i])} and {number(shown.high[i])}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}
