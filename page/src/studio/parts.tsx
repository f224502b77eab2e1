// Small parts of which the faces are made: fields with what is wrong beside them, figures, notes, code to copy.
import { signal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { PlaceMap, type Corners, type Drawing, type Events, type Shown } from "./map";
import { describedTheme } from "./theme";
import { start, wrong, type Area, type Place } from "./state";

interface FieldProps {
  label: string;
  field?: string;
  hint?: ComponentChildren;
  trouble?: string | null;
  children: (props: { id: string; "aria-describedby"?: string; "aria-invalid"?: "true" }) => JSX.Element;
}

export function Field({ label, field, hint, trouble, children }: FieldProps) {
  const id = useId();
  const bad = trouble ?? (field ? wrong(field) : null);
  const said = [bad ? `${id}-bad` : "", hint ? `${id}-hint` : ""].filter(Boolean).join(" ");
  return (
    <div class={bad ? "field bad" : "field"} data-field={field}>
      <label for={id}>{label}</label>
      {children({ id, ...(said ? { "aria-describedby": said } : {}), ...(bad ? { "aria-invalid": "true" as const } : {}) })}
      {bad && <p class="trouble" id={`${id}-bad`} role="alert">{bad}</p>}
      {hint && <p class="hint" id={`${id}-hint`}>{hint}</p>}
    </div>
  );
}

interface InputProps {
  label: string;
  value: string;
  said: (value: string) => void;
  field?: string;
  hint?: ComponentChildren;
  list?: string[];
  placeholder?: string;
  type?: "text" | "number";
  step?: string;
  trouble?: string | null;
}

/** A line of text. What is typed is said when it is done: on Enter, and when the field is left. */
export function Input({ label, value, said, field, hint, list, placeholder, type = "text", step, trouble }: InputProps) {
  const listed = useId();
  const props = { ...(field ? { field } : {}), ...(hint ? { hint } : {}), ...(trouble !== undefined ? { trouble } : {}) };
  return (
    <Field label={label} {...props}>
      {(own) => (
        <>
          <input
            {...own}
            type={type}
            value={value}
            spellcheck={false}
            autocomplete="off"
            {...(step ? { step } : {})}
            {...(placeholder ? { placeholder } : {})}
            {...(list?.length ? { list: listed } : {})}
            onChange={(event) => said(event.currentTarget.value)}
          />
          {list?.length ? (
            <datalist id={listed}>
              {list.map((one) => (
                <option key={one} value={one} />
              ))}
            </datalist>
          ) : null}
        </>
      )}
    </Field>
  );
}

interface SelectProps {
  label: string;
  value: string;
  options: [value: string, words: string][];
  said: (value: string) => void;
  field?: string;
  hint?: ComponentChildren;
}

export function Select({ label, value, options, said, field, hint }: SelectProps) {
  return (
    <Field label={label} {...(field ? { field } : {})} {...(hint ? { hint } : {})}>
      {(own) => (
        <select {...own} value={value} onChange={(event) => said(event.currentTarget.value)}>
          {options.map(([one, words]) => (
            <option key={one} value={one} selected={one === value}>
              {words}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

export function Check({ label, checked, said, hint }: { label: string; checked: boolean; said: (on: boolean) => void; hint?: string }) {
  const id = useId();
  return (
    <div class="check">
      <input id={id} type="checkbox" checked={checked} onChange={(event) => said(event.currentTarget.checked)} {...(hint ? { "aria-describedby": `${id}-hint` } : {})} />
      <label for={id}>{label}</label>
      {hint && <p class="hint" id={`${id}-hint`}>{hint}</p>}
    </div>
  );
}

interface SliderProps {
  label: string;
  /** The number itself; the slider moves on its logarithm. */
  value: number;
  low: number;
  high: number;
  unit: string;
  said: (value: number) => void;
  field?: string;
  hint?: ComponentChildren;
}

const STEPS = 120;
const neat = (value: number): number => Number(value.toPrecision(2));

/** A number on a logarithmic slider, with a field beside it for any other. */
export function Slider({ label, value, low, high, unit, said, field, hint }: SliderProps) {
  const share = Math.log(Math.min(high, Math.max(low, value || low)) / low) / Math.log(high / low);
  const of = (step: number) => neat(low * (high / low) ** (step / STEPS));
  return (
    <Field label={label} {...(field ? { field } : {})} {...(hint ? { hint } : {})}>
      {(own) => (
        <div class="slider">
          <input
            {...own}
            type="range"
            min={0}
            max={STEPS}
            step={1}
            value={Math.round(share * STEPS)}
            aria-valuetext={`${value} ${unit}`}
            onInput={(event) => said(of(Number(event.currentTarget.value)))}
          />
          <input
            type="number"
            aria-label={`${label}, as a number`}
            value={value}
            step="any"
            min={0}
            onChange={(event) => event.currentTarget.value && said(Number(event.currentTarget.value))}
          />
          <span class="unit">{unit}</span>
        </div>
      )}
    </Field>
  );
}

export function Choice<T extends string>({ label, value, options, said }: { label: string; value: T; options: [T, string][]; said: (one: T) => void }) {
  const name = useId();
  return (
    <fieldset class="choice">
      <legend>{label}</legend>
      <div>
        {options.map(([one, words]) => (
          <label key={one}>
            <input type="radio" name={name} checked={one === value} onChange={() => said(one)} />
            <span>{words}</span>
          </label>
        ))}
      </div>
    </fieldset>
  );
}

export function Note({ kind = "note", children }: { kind?: "note" | "warning" | "bad" | "good"; children: ComponentChildren }) {
  return (
    <div class={`note ${kind}`} role={kind === "bad" ? "alert" : undefined}>
      {children}
    </div>
  );
}

export function Panel({ title, children, open = true }: { title: string; children: ComponentChildren; open?: boolean }) {
  return (
    <details class="panel" open={open}>
      <summary>
        <h2>{title}</h2>
      </summary>
      <div class="inside">{children}</div>
    </details>
  );
}

export function Code({ text, label }: { text: string; label: string }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    window.setTimeout(() => setCopied(false), 2000);
  };
  return (
    <div class="code">
      <button type="button" class="quiet" onClick={() => void copy()} aria-label={`Copy ${label}`}>
        {copied ? "Copied" : "Copy"}
      </button>
      <pre tabIndex={0} aria-label={label}>
        <code>{text}</code>
      </pre>
    </div>
  );
}

/** The file and the lines of Python that do the same as the page. */
export function Same({ toml, python, file }: { toml: string; python: string; file: string }) {
  const tab = useState(() => signal<"toml" | "python">("toml"))[0];
  return (
    <details class="panel same">
      <summary>
        <h2>The same as a file and in Python</h2>
      </summary>
      <div class="inside">
        <Choice label="Show" value={tab.value} options={[["toml", `File (${file})`], ["python", "Python"]]} said={(one) => (tab.value = one)} />
        <Code text={tab.value === "toml" ? toml : python} label={tab.value === "toml" ? "the publication file" : "the lines of Python"} />
        {tab.value === "toml" && <p class="hint">Saved as {file}, any of these takes it: sfumato plan {file}, sfumato check {file}, sfumato publish {file}</p>}
      </div>
    </details>
  );
}

interface MapProps extends Events {
  label: string;
  place: Place | null;
  values?: Shown | null;
  area?: Area | null;
  delta?: { length: number; metres: boolean } | null;
  drawing?: Drawing;
  areas?: { corners: Corners; chosen: boolean }[];
}

/** The map as a part of a face. */
export function PlaceView(props: MapProps) {
  const host = useRef<HTMLDivElement>(null);
  const map = useRef<PlaceMap | null>(null);
  const events = useRef<Events>(props);
  events.current = props;
  const theme = describedTheme.value;
  useEffect(() => {
    const made = new PlaceMap(
      host.current!,
      props.label,
      { hover: (...told) => events.current.hover?.(...told), drawn: (...told) => events.current.drawn?.(...told) },
      start.value?.tiles ?? null,
    );
    map.current = made;
    const watching = new ResizeObserver(() => made.resize());
    watching.observe(host.current!);
    return () => {
      watching.disconnect();
      made.remove();
      map.current = null;
    };
  }, []);
  useEffect(() => void map.current?.show(props.place, props.values ?? null), [props.place, props.values]);
  useEffect(() => void map.current?.outline(props.area ?? null), [props.area, props.place]);
  useEffect(() => map.current?.hide(props.delta ?? null), [props.delta?.length, props.delta?.metres, props.place]);
  useEffect(() => map.current?.draw(props.drawing ?? null), [props.drawing]);
  useEffect(() => void map.current?.areas(props.areas ?? []), [props.areas, props.place]);
  useEffect(() => void map.current?.recolour(), [theme]);
  return <div class="map" ref={host} />;
}

export const number = (value: number | null | undefined, digits = 3): string =>
  value === null || value === undefined || !Number.isFinite(value)
    ? "unknown"
    : Math.abs(value) >= 1000
      ? Math.round(value).toLocaleString("en")
      : Number(value.toPrecision(digits)).toLocaleString("en", { maximumFractionDigits: 6 });
