// The figures of a view as text for other tools: the columns that `release.to_frame` has.
import { count, type AxisData, type View } from "./data";

// A spreadsheet runs what begins like this as a formula; an apostrophe before it says that it is text.
const FORMULA = /^[=+\-@\t\r\n＝＋－＠]/;

function quoted(text: string): string {
  const harmless = FORMULA.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless;
}

/** With all digits that 32 bits have, and no more. */
const exact = (values: Float32Array | Float64Array | null, at: number): string =>
  values === null ? "" : String(Number(values[at]!.toPrecision(values instanceof Float32Array ? 9 : 15)));

const columns = (axis: AxisData): string[] =>
  axis.kind === "names" ? [axis.name] : [`${axis.name}_low`, `${axis.name}_high`];

const told = (axis: AxisData, cell: number): string[] =>
  axis.kind === "names" ? [axis.names![cell]!] : [String(axis.edges![cell]!), String(axis.edges![cell + 1]!)];

/** One row a cell and a cell of every factor beside, none of them summed over. */
export function csv(view: View): string {
  const { along, beside } = view.data;
  const axes = [...beside, ...along];
  const figures = view.figures(beside.map((_, i) => i));
  const plain = (axis: AxisData, cell: number) =>
    axis.kind === "numbers" ? told(axis, cell).join() : told(axis, cell).map(quoted).join();
  const words = axes.map((axis) => Array.from({ length: count(axis) }, (_, cell) => plain(axis, cell)));
  const rows = [[...axes.flatMap(columns).map(quoted), "value", "stderr", "low", "high"].join()];
  const at = axes.map(() => 0);
  for (let i = 0; i < figures.value.length; i++) {
    const numbers = [figures.value, figures.stderr, figures.low, figures.high].map((values) => exact(values, i));
    rows.push([...at.map((cell, axis) => words[axis]![cell]!), ...numbers].join());
    for (let axis = axes.length - 1; axis >= 0; axis--) {
      at[axis]!++;
      if (at[axis]! < words[axis]!.length) break;
      at[axis] = 0;
    }
  }
  return rows.join("\n") + "\n";
}

export function download(name: string, text: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/csv;charset=utf-8" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
