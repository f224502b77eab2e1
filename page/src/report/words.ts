// Numbers and cells as people read them. Ends of intervals are rounded outwards, so that what is shown holds.
import type { AxisData, Part, View } from "./data";

const PLAIN = [0, 1, 2, 3].map(
  (digits) => new Intl.NumberFormat("en", { minimumFractionDigits: digits, maximumFractionDigits: digits }),
);

const digits = (size: number): 0 | 1 | 2 | 3 => (size >= 100 ? 0 : size >= 1 ? 1 : size >= 0.1 ? 2 : 3);

const written = (value: number, to: number): string => PLAIN[to]!.format(value).replace("-", "−");

function rounded(value: number, to: number, how: (x: number) => number): string {
  const power = 10 ** to;
  // What doubles lose in a product is no reason for another digit.
  const slack = how === Math.ceil ? -1e-12 : how === Math.floor ? 1e-12 : 0;
  return written(how(value * power + slack * Math.max(1, Math.abs(value) * power)) / power + 0, to);
}

export const number = (value: number, size = Math.abs(value)): string =>
  Number.isInteger(value) ? written(value, 0) : rounded(value, digits(size), Math.round);

/** Value, interval and standard error of a cell, each as text; empty where not known. */
export interface Told {
  value: string;
  low: string;
  high: string;
  stderr: string;
  exact: boolean;
}

export function told(part: Part, cell: number): Told {
  const at = part.first + cell;
  const { value, stderr, low, high } = part.figures;
  const exact = stderr !== null && stderr[at] === 0 && low !== null && high !== null && low[at] === high[at];
  const size = Math.max(Math.abs(value[at]!), stderr ? stderr[at]! : 0);
  const to = digits(size);
  return {
    value: number(value[at]!, size),
    low: low ? (Number.isInteger(low[at]!) ? number(low[at]!) : rounded(low[at]!, to, Math.floor)) : "",
    high: high ? (Number.isInteger(high[at]!) ? number(high[at]!) : rounded(high[at]!, to, Math.ceil)) : "",
    stderr: stderr ? number(stderr[at]!, stderr[at]!) : "",
    exact,
  };
}

const RECORDS = "records";

export function sentence(part: Part, cell: number, confidence: number): string {
  const { value: figure, low, high, stderr, exact } = told(part, cell);
  const value = part.counted === RECORDS ? `${figure} ${RECORDS}` : `${part.counted}: ${figure}`;
  if (exact) return `${value}, exactly: the policy makes it public`;
  if (low) return `${value}, ${percent(confidence)} interval ${low} to ${high}`;
  if (stderr) return `${value}, noise of standard error ${stderr}, and no interval: smoothing depends on the data`;
  return `${value}; the error depends on the data and is not stated`;
}

export const percent = (confidence: number): string => `${Number((100 * confidence).toPrecision(6))} %`;

/** So many digits that neighbouring edges differ. */
function places(edges: number[]): number {
  let least = Infinity;
  for (let i = 1; i < edges.length; i++) least = Math.min(least, edges[i]! - edges[i - 1]!);
  if (edges.every((edge) => Number.isInteger(edge))) return 0;
  return Math.min(Math.max(Math.ceil(-Math.log10(least)) + 1, 0), 12);
}

const PLACES = new WeakMap<AxisData, number>();

export function edge(axis: AxisData, value: number): string {
  let to = PLACES.get(axis);
  if (to === undefined) PLACES.set(axis, (to = places(axis.edges as number[])));
  return value.toFixed(to).replace("-", "−");
}

/** A time without what all times of the axis share: seconds of nothing, and midnight where all are. */
export function time(axis: AxisData, written: string): string {
  const dates = (axis.edges as string[]).every((one) => /T00:00(:00)?([+-]|$)/.test(one) || !one.includes("T"));
  const clock = written.replace(/([+-]\d\d:\d\d(:\d\d)?|Z)$/, "");
  return dates ? clock.slice(0, clock.includes("T") ? clock.indexOf("T") : undefined) : clock.replace("T", " ");
}

/** A cell of an axis by its name, or by where it begins. */
export function short(axis: AxisData, cell: number): string {
  if (axis.kind === "names") return axis.names![cell]!;
  return axis.kind === "times" ? time(axis, axis.edges![cell] as string) : edge(axis, axis.edges![cell] as number);
}

/** The same with its end. */
export function long(axis: AxisData, cell: number): string {
  if (axis.kind === "names") return axis.names![cell]!;
  const [from, to] = [axis.edges![cell]!, axis.edges![cell + 1]!];
  if (axis.kind === "numbers") return `${axis.name} ${edge(axis, from as number)} to ${edge(axis, to as number)}`;
  const [begin, end] = [time(axis, from as string), time(axis, to as string)];
  const [day, clock] = end.split(" ");
  return `${begin} to ${clock && begin.startsWith(day!) ? clock : end}`;
}

export const place = (view: View, cell: number): string =>
  view.cells(cell).map((at, i) => long(view.data.along[i]!, at)).join(", ");

/** The name of an axis with what its numbers are. */
export function unit(axis: AxisData, ground = ""): string {
  const told = axis.kind === "times" ? axis.zone : axis.kind === "numbers" ? ground : "";
  return told ? `${axis.name} (${told})` : axis.name;
}

/** Round numbers from low to high, some five of them. */
export function ticks(low: number, high: number, many = 5): number[] {
  const span = high - low;
  if (!(span > 0) || !Number.isFinite(span)) return [low];
  const power = 10 ** Math.floor(Math.log10(span / many));
  const step = power * [1, 2, 5, 10].find((one) => span / (one * power) <= many)!;
  const found: number[] = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * span; i++) found.push(Number((i * step).toPrecision(12)));
  return found;
}

export const tick = (value: number): string =>
  Math.abs(value) >= 1e4 ? written(value, 0) : String(Number(value.toPrecision(8))).replace("-", "−");

