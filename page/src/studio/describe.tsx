// What is published, and what of it is hidden: the data's columns, the area, hours and groups, and how far somebody may
// move unseen.
import { signal } from "@preact/signals";
import { useState } from "preact/hooks";
import { ask } from "./api";
import { boundsOf } from "./plane";
import { Check, Choice, Field, Input, Note, number, Panel, PlaceView, Select, Slider } from "./parts";
import { area, columns, described, readColumns, say, start, tables, text, trouble, troubleOf, value, type Area } from "./state";
import { factors, hidden, hiding, put, question, type Hidden, type Plain, type Publication, type Table } from "./tables";

const drawing = signal(false);

/** Change the domain, and the question with it. */
function domain(change: (tables: Publication) => Publication): void {
  const told = change(tables.value);
  const place = text("ask").startsWith("histogram") || text("ask").includes("place=histogram") ? "histogram" : "ranges";
  tables.value = { ...told, ask: question(told, place) };
}

const numbers = (given: string): Plain => {
  const parts = given.split(/[,\s]+/).filter(Boolean);
  return parts.every((one) => Number.isFinite(Number(one))) ? parts.map(Number) : given;
};
const words = (given: string): Plain => given.split(",").map((one) => one.trim()).filter(Boolean);
const listed = (found: Plain | undefined): string => (Array.isArray(found) ? found.join(", ") : found === undefined ? "" : String(found));

export function Describe() {
  const there = described.value;
  const delta = there?.delta ?? null;
  return (
    <div class="face">
      <div class="side">
        <DataPart />
        <PlacePart />
        <HoursPart />
        <GroupPart />
        <HiddenPart />
      </div>
      <div class="stage">
        <div class="toolbar">
          <button
            type="button"
            aria-pressed={drawing.value}
            disabled={there?.domain.place?.degrees === false && there.domain.place.kind === "cells"}
            onClick={() => (drawing.value = !drawing.value)}
          >
            Draw the area
          </button>
          <p class="hint" aria-live="polite">
            {drawing.value
              ? "Drag a rectangle; or move the map with the arrow keys and press Space at two corners."
              : delta
                ? "The circle is δ: whoever stands at its centre could be anywhere inside, and the release would look nearly the same."
                : "No circle: what is hidden here is no distance on the map."}
          </p>
        </div>
        <PlaceView
          label="The area and its cells"
          place={there?.domain.place ?? null}
          area={area.value}
          delta={drawing.value ? null : delta}
          drawing={drawing.value ? "rectangle" : null}
          drawn={(_, corners) => {
            drawing.value = false;
            const name = factors(tables.value).place;
            if (!name) return;
            const [[x0, y0], , [x1, y1]] = corners as [[number, number], [number, number], [number, number]];
            const digits = there?.domain.place?.degrees ? 4 : 2;
            const bounds = [x0, y0, x1, y1].map((one) => Number(one.toFixed(digits)));
            say([`domain.${name}.${"h3" in tables.value.domain[name]! ? "cover" : "bounds"}`, bounds]);
          }}
        />
        {there && (
          <div class="said" aria-live="polite">
            <h2>What is hidden</h2>
            <p class="relation">{there.hidden}</p>
            {there.total_is_public && <p>How many records there are is not hidden: the release says it exactly.</p>}
            <p class="hint">
              {number(there.domain.cells)} cells{there.domain.shape.length > 1 ? ` (${there.domain.shape.join(" × ")})` : ""}
            </p>
            {there.warnings.map((one) => (
              <Note kind="warning" key={one}>
                {one}
              </Note>
            ))}
          </div>
        )}
      </div>
    </div>
  );
}

function DataPart() {
  const found = columns.value;
  const { place, time, group } = factors(tables.value);
  const all: [string, string][] = [["", "choose a column"], ...(found?.columns ?? []).map(({ name, kind }): [string, string] => [name, kind ? `${name} (${kind.toLowerCase()})` : name])];
  const axes = place ? ((value(`domain.${place}.names`) as string[] | undefined) ?? (place === "place" ? ["x", "y"] : [`${place}_x`, `${place}_y`])) : [];
  const h3 = place !== null && "h3" in tables.value.domain[place]!;
  const wanted: [string, string][] = [
    ...(place && !h3 ? axes.map((axis, i): [string, string] => [axis, i === 0 ? "Column of x (longitude)" : "Column of y (latitude)"]) : []),
    ...(place && h3 ? ([["x", "Column of the longitude"], ["y", "Column of the latitude"]] as [string, string][]) : []),
    ...(time ? ([[time, "Column of the time"]] as [string, string][]) : []),
    ...(group ? ([[group, `Column of ${group}`]] as [string, string][]) : []),
  ];
  return (
    <Panel title="Data">
      <Input
        label="File (Parquet or CSV)"
        field="data.path"
        value={text("data.path")}
        list={start.value?.listed.data ?? []}
        placeholder="visits.parquet"
        said={(one) => {
          say(["data.path", one]);
          void readColumns();
        }}
        hint="Names and types of its columns are read, and no value."
      />
      {found &&
        wanted.map(([axis, label]) => (
          <Select key={axis} label={label} field="data.columns" value={text(`data.columns.${axis}`)} options={all} said={(one) => say([`data.columns.${axis}`, one])} />
        ))}
      {found && (
        <Select
          label="Whose record it is"
          field="data.entity"
          value={text("data.entity")}
          options={[["", "nobody's: the promise speaks of a record"], ...all.slice(1)]}
          said={(one) => say(["data.entity", one], ["max_per_entity", one ? ((value("max_per_entity") as number | undefined) ?? 1) : undefined])}
          hint="With a person's column, the promise speaks of a person."
        />
      )}
      {value("data.entity") !== undefined && (
        <Input
          label="Records counted of one person, at most"
          field="max_per_entity"
          type="number"
          value={text("max_per_entity")}
          said={(one) => say(["max_per_entity", one ? Number(one) : undefined])}
        />
      )}
    </Panel>
  );
}

function PlacePart() {
  const { place } = factors(tables.value);
  const told = place ? tables.value.domain[place]! : {};
  const kind = !place ? "none" : "h3" in told ? "h3" : "grid";
  const name = place ?? "place";
  const [map, setMap] = useState("");
  const [bad, setBad] = useState<string | null>(null);
  const there = described.value?.domain.place ?? null;
  const bounds = (): number[] => {
    const known = (told.bounds ?? told.cover) as Plain | undefined;
    if (Array.isArray(known) && known.length === 4 && typeof known[0] === "number") return known as number[];
    return there ? boundsOf(there).map((one) => Number(one.toFixed(4))) : [-74.3, 40.5, -73.7, 40.95];
  };
  const turn = (to: string) =>
    domain((all) => {
      const { [name]: _, ...rest } = all.domain;
      if (to === "none") return { ...all, domain: rest };
      const box = bounds();
      const made: Table = to === "h3" ? { h3: 8, cover: box } : { bounds: box, shape: [64, 64], crs: "EPSG:4326" };
      return { ...all, domain: { [name]: made, ...rest } };
    });
  const load = async (path: string) => {
    setMap(path);
    setBad(null);
    if (!path) {
      area.value = start.value?.outlines ?? null;
      return;
    }
    try {
      const found = await ask<Area>("area", { path, data: text("data.path") });
      area.value = found;
      if (kind === "h3") say([`domain.${name}.cover`, path]);
      else if (kind === "grid") say([`domain.${name}.bounds`, found.bounds.map((one) => Number(one.toFixed(4)))]);
    } catch (error) {
      setBad(troubleOf(error).message);
    }
  };
  return (
    <Panel title="Place">
      <Choice label="Cells" value={kind} options={[["grid", "Grid"], ["h3", "Hexagons"], ["none", "No place"]]} said={turn} />
      {kind === "grid" && (
        <>
          <Input
            label="Bounds: west, south, east, north"
            field={`domain.${name}.bounds`}
            value={listed(told.bounds)}
            said={(one) => say([`domain.${name}.bounds`, numbers(one)])}
            hint="From what everybody may know, such as a map; never from a look at the data."
          />
          <Choice
            label="Size of a cell"
            value={"cell" in told ? "cell" : "shape"}
            options={[["shape", "So many cells"], ["cell", "In metres"]]}
            said={(to) => {
              const { shape: _, cell: __, ...rest } = told;
              const made = to === "cell" ? { ...rest, crs: "EPSG:4326", cell: "500 m" } : { ...rest, shape: there?.kind === "grid" ? [there.x.length - 1, there.y.length - 1] : [64, 64] };
              tables.value = { ...tables.value, domain: { ...tables.value.domain, [name]: made } };
            }}
          />
          {"cell" in told ? (
            <Input label="Side of a cell" field={`domain.${name}.cell`} value={text(`domain.${name}.cell`)} said={(one) => say([`domain.${name}.cell`, one])} />
          ) : (
            <Input label="Cells across, cells up" field={`domain.${name}.shape`} value={listed(told.shape)} said={(one) => say([`domain.${name}.shape`, numbers(one)])} />
          )}
          <Check
            label="Longitudes and latitudes on Earth (EPSG:4326)"
            checked={"crs" in told}
            hint="Distances in metres need this. Without it these are plain numbers."
            said={(on) => say([`domain.${name}.crs`, on ? "EPSG:4326" : undefined])}
          />
        </>
      )}
      {kind === "h3" && (
        <>
          <Input label="Resolution of H3" type="number" field={`domain.${name}.h3`} value={text(`domain.${name}.h3`)} said={(one) => say([`domain.${name}.h3`, Number(one)])} hint="8: about 0.7 km² each; 9: 0.1 km²; 7: 5 km²." />
          <Input
            label="Area that they cover: four bounds, or a GeoJSON file"
            field={`domain.${name}.cover`}
            value={listed(told.cover)}
            list={start.value?.listed.maps ?? []}
            said={(one) => (/[a-z]/i.test(one) ? void load(one) : say([`domain.${name}.cover`, numbers(one)]))}
            trouble={bad}
          />
        </>
      )}
      {kind === "grid" && (
        <Input label="Outlines to draw (GeoJSON), and to take the bounds from" value={map || (area.value?.name ?? "")} list={start.value?.listed.maps ?? []} said={(one) => void load(one)} trouble={bad} />
      )}
      {trouble.value?.field?.startsWith("domain") && !document.querySelector(`[data-field="${trouble.value.field}"]`) && <Note kind="bad">{trouble.value.message}</Note>}
    </Panel>
  );
}

function HoursPart() {
  const { time } = factors(tables.value);
  const told = time ? tables.value.domain[time]! : {};
  const kind = !time ? "none" : "cycle" in told ? "cycle" : "times";
  const turn = (to: string) =>
    domain((all) => {
      const { [time ?? ""]: _, ...rest } = all.domain;
      const name = time ?? "t";
      const more = to === "none" ? {} : { [name]: (to === "cycle" ? { cycle: "hour of day" } : { start: "2026-01-01", stop: "2026-02-01", every: "1 day" }) as Table };
      const made = { ...all, domain: { ...rest, ...more } };
      if (to === "none" || kind === "none") return { ...made, public: undefined, ...publicly(made, name, to !== "none") } as unknown as Publication;
      return made;
    });
  return (
    <Panel title="Hours" open={kind !== "none"}>
      <Choice label="Time" value={kind} options={[["none", "None"], ["times", "A calendar"], ["cycle", "A cycle"]]} said={turn} />
      {kind === "times" && (
        <>
          <Input label="From" field={`domain.${time}.start`} value={text(`domain.${time}.start`)} said={(one) => say([`domain.${time}.start`, one])} />
          <Input label="Up to, not including" field={`domain.${time}.stop`} value={text(`domain.${time}.stop`)} said={(one) => say([`domain.${time}.stop`, one])} />
          <Input label="Steps of" field={`domain.${time}.every`} value={text(`domain.${time}.every`)} said={(one) => say([`domain.${time}.every`, one])} hint="1 h, 1 day, 15 min" />
        </>
      )}
      {kind === "cycle" && (
        <Select
          label="What repeats"
          field={`domain.${time}.cycle`}
          value={text(`domain.${time}.cycle`)}
          options={[["hour of day", "hour of day"], ["day of week", "day of week"], ["hour of week", "hour of week"]]}
          said={(one) => say([`domain.${time}.cycle`, one])}
        />
      )}
      {time && <Input label="Zone of the clocks" field={`domain.${time}.tz`} value={text(`domain.${time}.tz`)} placeholder="such as Europe/Berlin; empty: none" said={(one) => say([`domain.${time}.tz`, one])} />}
    </Panel>
  );
}

/** Which factors nothing changes, and are thereby published exactly, once somebody says so. */
function publicly(all: Table, name: string, on: boolean): { public?: string[] } {
  const known = (Array.isArray(all.public) ? (all.public as string[]) : []).filter((one) => one !== name);
  const told = on ? [...known, name] : known;
  return told.length ? { public: told } : {};
}

function GroupPart() {
  const { group } = factors(tables.value);
  const [name, setName] = useState("mode");
  const add = () =>
    domain((all) => {
      const made = { ...all, domain: { ...all.domain, [name]: { labels: ["bus", "bike", "rest"], other: "rest" } as Table } } as Publication;
      const rule = hidden(text("hide"));
      return rule && !rule.whole ? { ...made, hide: hiding({ ...rule, change: [...rule.change, name] }) } : made;
    });
  const remove = () =>
    domain((all) => {
      const { [group!]: _, ...rest } = all.domain;
      const rule = hidden(text("hide"));
      const { public: __, ...others } = all;
      const made = { ...others, domain: rest, ...publicly(all, group!, false) } as Publication;
      return rule && !rule.whole ? { ...made, hide: hiding({ ...rule, change: rule.change.filter((one) => one !== group) }) } : made;
    });
  return (
    <Panel title="Groups" open={group !== null}>
      {group ? (
        <>
          <Input
            label={`Labels of ${group}`}
            field={`domain.${group}.labels`}
            value={listed(value(`domain.${group}.labels`))}
            said={(one) => say([`domain.${group}.labels`, words(one)])}
            hint="All that there can be, whether it occurs or not."
          />
          <Input label="The label that takes what is none of them" field={`domain.${group}.other`} value={text(`domain.${group}.other`)} said={(one) => say([`domain.${group}.other`, one])} />
          <button type="button" class="quiet" onClick={remove}>
            Remove {group}
          </button>
        </>
      ) : (
        <>
          <Input label="Name of the attribute" value={name} said={setName} />
          <button type="button" onClick={add} disabled={!/^[A-Za-z_]\w*$/.test(name)}>
            Add groups
          </button>
        </>
      )}
    </Panel>
  );
}

function HiddenPart() {
  const rule = hidden(text("hide"));
  const { place, time, group } = factors(tables.value);
  const metres = place !== null && ("crs" in tables.value.domain[place]! || "h3" in tables.value.domain[place]! || "cell" in tables.value.domain[place]!);
  const turn = (changed: Partial<Hidden>) => rule && say(["hide", hiding({ ...rule, ...changed })]);
  const known = (Array.isArray(value("public")) ? value("public") : []) as string[];
  return (
    <Panel title="What stays hidden">
      {rule && (
        <>
          <Choice
            label="A record may"
            value={rule.whole ?? "some"}
            options={[["some", "change in some ways"], ["anything", "become any other"], ["presence", "appear or vanish"]]}
            said={(one) =>
              one === "some" ? say(["hide", hiding({ ...rule, whole: null, move: rule.move ?? (place ? { length: metres ? 500 : 0.01, metres } : null) })]) : turn({ whole: one as "anything" })
            }
          />
          {!rule.whole && rule.move && (
            <DeltaSlider rule={rule} />
          )}
          {!rule.whole && group && (
            <Check
              label={`Its ${group} becomes any other`}
              checked={rule.change.includes(group)}
              said={(on) => turn({ change: on ? [...rule.change, group] : rule.change.filter((one) => one !== group) })}
            />
          )}
          {!rule.whole && time && (
            <Check
              label={`Its ${time} moves by less than an hour`}
              checked={rule.times.some((one) => one.factor === time)}
              said={(on) => turn({ times: on ? [{ factor: time, length: "1 h" }] : [] })}
            />
          )}
        </>
      )}
      <Input label="As it is written" field="hide" value={text("hide")} said={(one) => say(["hide", one])} hint="Any relation of the library's, such as move(&quot;500 m&quot;) & move(&quot;30 min&quot;, of=&quot;t&quot;)." />
      {[time, group].filter((one): one is string => one !== null).map((one) => (
        <Check
          key={one}
          label={`${one} is public: how many records there are of each is published exactly`}
          checked={known.includes(one)}
          said={(on) => {
            const told = publicly(tables.value, one, on).public;
            tables.value = put(tables.value, "public", told) as Publication;
          }}
        />
      ))}
      <Field label="What will be asked" field="ask">
        {(own) => (
          <select
            {...own}
            value={["ranges", "histogram"].find((one) => question(tables.value, one as "ranges") === text("ask")) ?? "other"}
            onChange={(event) => event.currentTarget.value !== "other" && say(["ask", question(tables.value, event.currentTarget.value as "ranges")])}
          >
            <option value="ranges">areas of all sizes</option>
            <option value="histogram">single cells</option>
            <option value="other">{text("ask")}</option>
          </select>
        )}
      </Field>
    </Panel>
  );
}

export function DeltaSlider({ rule }: { rule: Hidden }) {
  const move = rule.move!;
  return (
    <Slider
      label="δ: a place moves by less than"
      field="hide-delta"
      value={move.length}
      low={move.metres ? 50 : 0.0005}
      high={move.metres ? 5000 : 0.5}
      unit={move.metres ? "m" : "units"}
      said={(length) => say(["hide", hiding({ ...rule, move: { ...move, length } })])}
    />
  );
}
