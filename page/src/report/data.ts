// What a page holds, unpacked: views, each with the cells that it is drawn along, the factors beside, and for every set
// of those a table of figures. `src/sfumato/report` writes it.

export type Packed = { all: number } | { f4: string } | { f8: string } | { less: number } | { more: number } | null;

export interface AxisData {
  name: string;
  what: string;
  kind: "numbers" | "times" | "names";
  edges?: (number | string)[];
  names?: string[];
  zone?: string;
}

export interface LinesData {
  points: string;
  lines: string;
  step: number;
  groups?: string;
  closed?: boolean;
}

export interface Ground {
  bounds: [number, number, number, number];
  aspect: number;
  metres: number | null;
  unit: string;
  note: string;
}

export interface ViewData {
  name: string;
  what: string;
  kind: "grid" | "shapes" | "curve" | "bars" | "table";
  along: AxisData[];
  beside: AxisData[];
  said: string[];
  tables: { beside: number[]; value: Packed; stderr: Packed; low: Packed; high: Packed }[];
  ground?: Ground;
  shapes?: LinesData;
  rows?: number[];
  lines?: LinesData;
}

export interface PageData {
  format: number;
  title: string;
  release: string;
  confidence: number;
  private: boolean;
  counted: string;
  views: ViewData[];
}

export const FORMAT = 1;

type Numbers = Float32Array | Float64Array;
const KINDS = { f4: Float32Array, f8: Float64Array, u4: Uint32Array, i2: Int16Array } as const;

/** Numbers that were written little-endian, as base64. */
export function unpacked<K extends keyof typeof KINDS>(text: string, kind: K): InstanceType<(typeof KINDS)[K]> {
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  const size = KINDS[kind].BYTES_PER_ELEMENT;
  if (new Uint8Array(new Uint16Array([1]).buffer)[0] === 0) {
    for (let i = 0; i < bytes.length; i += size) bytes.subarray(i, i + size).reverse();
  }
  return new KINDS[kind](bytes.buffer) as InstanceType<(typeof KINDS)[K]>;
}

function numbers(packed: Packed, size: number): Numbers | null {
  if (packed === null) return null;
  if ("all" in packed) return new Float64Array(size).fill(packed.all);
  if ("f4" in packed) return unpacked(packed.f4, "f4");
  if ("f8" in packed) return unpacked(packed.f8, "f8");
  throw new Error("numbers of an unknown kind");
}

/** Estimates with their errors; what is not known is null. */
export class Figures {
  readonly value: Numbers;
  readonly stderr: Numbers | null;
  readonly low: Numbers | null;
  readonly high: Numbers | null;

  constructor(held: ViewData["tables"][number], size: number) {
    this.value = numbers(held.value, size) ?? new Float64Array(size).fill(Number.NaN);
    this.stderr = numbers(held.stderr, size);
    this.low = this.end(held.low, size);
    this.high = this.end(held.high, size);
  }

  /** How uncertain the estimates are: standard errors, or half the width of the intervals where those alone are known. */
  get spread(): Numbers | null {
    const { stderr, low, high } = this;
    return stderr ?? (low && high ? Float64Array.from(low, (end, i) => (high[i]! - end) / 2) : null);
  }

  /** An end of the intervals: numbers of its own, or a constant away from the estimates and cut at zero. */
  private end(held: Packed, size: number): Numbers | null {
    if (held === null || !("less" in held || "more" in held)) return numbers(held, size);
    const away = "less" in held ? -held.less : held.more;
    return Float64Array.from(this.value, (value) => Math.max(value + away, 0));
  }
}

export const count = (axis: AxisData): number => (axis.kind === "names" ? axis.names!.length : axis.edges!.length - 1);

/** What is chosen of every factor beside: a cell, or null for all of them together. */
export type Choice = (number | null)[];

/** The figures that are looked at: of a table those from `first` on, one a cell. */
export interface Part {
  /** What the figures are: records, or what was summed or counted in their place. */
  counted: string;
  figures: Figures;
  first: number;
  size: number;
}

export class View {
  readonly size: number;
  private readonly tables = new Map<string, Figures>();

  constructor(
    readonly data: ViewData,
    readonly counted: string,
  ) {
    this.size = data.along.reduce((size, axis) => size * count(axis), 1);
  }

  figures(beside: number[]): Figures {
    const key = beside.join();
    let found = this.tables.get(key);
    if (!found) {
      const held = this.data.tables.find((one) => one.beside.join() === key)!;
      found = new Figures(held, beside.reduce((size, i) => size * count(this.data.beside[i]!), this.size));
      this.tables.set(key, found);
    }
    return found;
  }

  part(choice: Choice): Part {
    const beside = choice.flatMap((cell, i) => (cell === null ? [] : [i]));
    const place = beside.reduce((at, i) => at * count(this.data.beside[i]!) + choice[i]!, 0);
    return { counted: this.counted, figures: this.figures(beside), first: place * this.size, size: this.size };
  }

  /** The cells along each axis that make this cell. */
  cells(index: number): number[] {
    const found: number[] = [];
    for (const axis of [...this.data.along].reverse()) {
      found.unshift(index % count(axis));
      index = Math.floor(index / count(axis));
    }
    return found;
  }
}
