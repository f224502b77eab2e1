// What it will be worth, before anything is spent: the error of a street corner, a district and the city, what beats
// what, and what is not hidden. Nothing of the data is drawn here.
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { latest, unpacked } from "./api";
import { DeltaSlider } from "./describe";
import { Legend } from "./legend";
import type { Shown } from "./map";
import { Choice, Input, Note, number, Panel, PlaceView, Slider } from "./parts";
import { area, described, plan, planning, say, tables, text, trouble, troubleOf, words, type Plan as Planned } from "./state";
import { hidden } from "./tables";

interface Preview {
  records: number;
  truth: string;
  value: string;
  map: boolean;
}

const preview = signal<{ records: number; truth: Shown; value: Shown } | null>(null);
const refused = signal<string | null>(null);
const looking = signal<"value" | "truth">("value");
let timer = 0;

async function look(): Promise<void> {
  try {
    const told = await latest<Preview>("preview", { publication: tables.value });
    if (!told) return;
    refused.value = null;
    if (!told.map) {
      preview.value = null;
      return;
    }
    const [truth, value] = [unpacked(told.truth), unpacked(told.value)];
    const high = quantile(truth, 0.995) || 1;
    preview.value = {
      records: told.records,
      truth: { values: truth, low: 0, high, colours: "viridis" },
      value: { values: value, low: 0, high, colours: "viridis" },
    };
  } catch (error) {
    preview.value = null;
    refused.value = troubleOf(error).message;
  }
}

/** Where a share of the values lies below: colours are not stretched by the one fullest cell. */
export function quantile(values: Float32Array, share: number): number {
  const sorted = Float32Array.from(values.filter(Number.isFinite)).sort();
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;
}

export function Plan() {
  const told = plan.value;
  const rule = hidden(text("hide"));
  const place = described.value?.domain.place ?? null;
  useEffect(() => {
    clearTimeout(timer);
    timer = window.setTimeout(() => void look(), 250);
    return () => clearTimeout(timer);
  }, [tables.value]);
  const shown = preview.value;
  return (
    <div class="face">
      <div class="side">
        <Panel title="How much privacy">
          <Slider
            label="ε: the budget of this release"
            field="epsilon"
            value={Number(text("epsilon"))}
            low={0.01}
            high={10}
            unit=""
            said={(one) => say(["epsilon", String(one)])}
            hint="Smaller hides more, and is less accurate."
          />
          {rule?.move && !rule.whole ? <DeltaSlider rule={rule} /> : <p class="hint">What is hidden: {text("hide")}</p>}
          <Input
            label="About how many records there will be"
            field="records"
            type="number"
            value={text("records")}
            placeholder="a public guess, or nothing"
            said={(one) => say(["records", one ? Number(one) : undefined])}
            hint="Never a count of these data: a guess from what everybody may know."
          />
        </Panel>
        {told && <Accuracy told={told} />}
        {told && <Rivals told={told} />}
      </div>
      <div class="stage">
        {trouble.value && !["epsilon", "records"].includes(trouble.value.field ?? "") && <Note kind="bad">{trouble.value.message}</Note>}
        {place && (
          <>
            <div class="toolbar">
              <Choice label="Preview" value={looking.value} options={[["value", "As released"], ["truth", "The made-up truth"]]} said={(one) => (looking.value = one)} />
              <p class="badge">
                Made-up people{shown ? `: ${number(shown.records)} who do not exist` : ""}. Nothing of your data is drawn.
              </p>
            </div>
            <PlaceView label="Preview on made-up people" place={place} values={shown ? shown[looking.value] : null} area={area.value} delta={described.value?.delta ?? null} />
            {shown && <Legend shown={shown.value} title="records a cell" />}
            {refused.value && <Note>{refused.value}</Note>}
          </>
        )}
        <NotHidden />
      </div>
    </div>
  );
}

function Accuracy({ told }: { told: Planned }) {
  const named = (size: string, whole: boolean, i: number, all: number) =>
    whole ? "The city as a whole" : i === 0 ? "A street corner: one cell" : i === Math.max(1, all - 2) ? `A district: ${size} cells` : `${size} cells`;
  const groups = [...new Set(told.scales.map((one) => one.factor))];
  const place = described.value?.domain.place?.name;
  return (
    <Panel title="How accurate">
      {groups.map((factor) => {
        const scales = told.scales.filter((one) => one.factor === factor);
        const widest = Math.max(...scales.map((one) => one.typical), 1e-9);
        return (
          <table class="figures" key={factor} aria-busy={planning.value}>
            <caption>{groups.length > 1 ? `${factor}, all else summed over` : "Expected error, 19 times in 20 within"}</caption>
            <tbody>
              {scales.map((one, i) => (
                <tr key={one.size}>
                  <th scope="row">{factor === place ? named(one.size, one.whole, i, scales.length) : one.size}</th>
                  <td class="bar">
                    <span style={{ width: `${Math.max(1, (100 * one.typical) / widest)}%` }} />
                  </td>
                  <td class="number">{one.typical === 0 ? "exact" : `± ${number(one.typical)}`}</td>
                </tr>
              ))}
            </tbody>
          </table>
        );
      })}
      <p>
        {told.typical_error === null
          ? "The error depends on the data, and is not known beforehand."
          : `Over ${told.ask_in_words}: a typical answer is right to ± ${number(told.typical_error)} records, 19 times in 20.`}
        {told.basis !== "exact" && told.basis ? ` ${told.basis}.` : ""}
      </p>
      {told.worth && <p>{told.worth}.</p>}
      {told.resolution_in_words && <p class="hint">{told.resolution_in_words}.</p>}
      <p class="hint">No data were looked at, and nothing was charged.</p>
    </Panel>
  );
}

function Rivals({ told }: { told: Planned }) {
  const best = told.expected_error;
  const weighed = told.alternatives.filter((one) => one.expected_error !== null);
  const others = told.alternatives.filter((one) => one.expected_error === null);
  return (
    <Panel title="Which mechanism, and its rivals">
      <p>{told.mechanism_in_words}</p>
      <table class="figures">
        <thead>
          <tr>
            <th scope="col">mechanism</th>
            <th scope="col" class="number">
              error against the choice
            </th>
          </tr>
        </thead>
        <tbody>
          {weighed.map((one) => (
            <tr key={one.name} class={one.name === told.mechanism_name ? "chosen" : ""}>
              <th scope="row">
                {one.name}
                {one.name === told.mechanism_name ? " (chosen)" : ""}
              </th>
              <td class="number">{best ? `${number(Math.sqrt(one.expected_error! / best))} ×` : "—"}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {others.length > 0 && (
        <details>
          <summary>{others.length} that cannot be used here</summary>
          <ul class="reasons">
            {others.map((one) => (
              <li key={one.name}>
                <b>{one.name}</b>: {one.reason}
              </li>
            ))}
          </ul>
        </details>
      )}
    </Panel>
  );
}

export function NotHidden() {
  const told = words.value;
  const hides = described.value?.hidden;
  return (
    <section class="promise" aria-label="The promise">
      <Words promise={plan.value?.promise ?? hides ?? ""} told={told} />
    </section>
  );
}

/** A promise in one line, and in all its words. */
export function Words({ promise, told }: { promise: string; told: { promise: string; limits: string[] } | null }) {
  return (
    <>
      <div>
        <h2>What is promised</h2>
        <p>{promise}</p>
        {told && <p class="words">{told.promise}</p>}
      </div>
      <div>
        <h2>How far it goes, and what is not hidden</h2>
        {told ? (
          told.limits.map((one) => (
            <p class="words" key={one}>
              {one}
            </p>
          ))
        ) : (
          <p class="hint">Working out how far things are from each other …</p>
        )}
      </div>
    </>
  );
}
