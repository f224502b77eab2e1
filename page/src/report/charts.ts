// Curves with the band of their intervals, and bars with whiskers.
import { fitted, frame, type Box, type Drawing, type Pen, type Theme } from "./canvas";
import { count, type Part, type View } from "./data";
import { drawn, uncertainty, type What } from "./scale";
import { edge, short, tick, ticks, unit } from "./words";

/** From the least to the largest of all that is drawn of a table, with zero among them. */
function range(part: Part, what: What): [number, number] {
  const values = drawn(part, what);
  let [low, high] = [0, 1e-9];
  const reach = (all: ArrayLike<number>) => {
    for (let i = 0; i < all.length; i++) {
      low = Math.min(low, all[i]!);
      high = Math.max(high, all[i]!);
    }
  };
  reach(values);
  if (what === "estimate" && part.figures.low && part.figures.high) {
    reach(part.figures.low);
    reach(part.figures.high);
  }
  return [low, high === 1e-9 ? 1 : high];
}

abstract class Chart implements Drawing {
  protected box: Box = { left: 0, top: 0, width: 1, height: 1 };
  protected readonly low: number;
  protected readonly high: number;
  protected readonly n: number;

  constructor(
    protected readonly view: View,
    protected readonly part: Part,
    protected readonly what: What,
    protected readonly look: Theme,
  ) {
    [this.low, this.high] = range(part, what);
    this.n = count(view.data.along[0]!);
  }

  abstract fit(width: number): { width: number; height: number };
  abstract draw(pen: Pen, width: number): void;
  abstract at(x: number, y: number): number | null;
  abstract step(cell: number, right: number, up: number): number;
  abstract mark(pen: Pen, cell: number): void;

  begin(): number {
    return 0;
  }

  protected get label(): string {
    return this.what === "estimate" ? `estimated ${this.part.counted}` : uncertainty(this.part);
  }

  protected bounded(cell: number): number {
    return Math.min(Math.max(cell, 0), this.n - 1);
  }
}

export class CurveDrawing extends Chart {
  private left(cell: number): number {
    const axis = this.view.data.along[0]!;
    if (axis.kind !== "numbers") return this.box.left + (cell / this.n) * this.box.width;
    const edges = axis.edges as number[];
    return this.box.left + ((edges[cell]! - edges[0]!) / (edges.at(-1)! - edges[0]!)) * this.box.width;
  }

  private y(value: number): number {
    return this.box.top + (1 - (value - this.low) / (this.high - this.low)) * this.box.height;
  }

  fit(width: number): { width: number; height: number } {
    this.box = { left: 64, top: 28, width: width - 78, height: Math.min(320, Math.max(180, 0.45 * width)) };
    return { width, height: this.box.height + this.box.top + 44 };
  }

  draw(pen: Pen): void {
    const { box, look, n, part } = this;
    const axis = this.view.data.along[0]!;
    const { low, high } = part.figures;
    if (this.what === "estimate" && low && high) {
      pen.fillStyle = look.band;
      for (let i = 0; i < n; i++) {
        const [from, to] = [this.left(i), this.left(i + 1)];
        const top = this.y(high[part.first + i]!);
        pen.fillRect(from, top, to - from, Math.max(this.y(low[part.first + i]!) - top, 1));
      }
    }
    const values = drawn(part, this.what);
    pen.strokeStyle = look.accent;
    pen.lineWidth = 1.75;
    pen.beginPath();
    for (let i = 0; i < n; i++) {
      const y = this.y(values[part.first + i]!);
      if (i === 0) pen.moveTo(this.left(0), y);
      else pen.lineTo(this.left(i), y);
      pen.lineTo(this.left(i + 1), y);
    }
    pen.stroke();
    const up = { low: this.low, high: this.high, name: this.label };
    if (axis.kind === "numbers") {
      const edges = axis.edges as number[];
      frame(pen, box, look, { low: edges[0]!, high: edges.at(-1)!, name: unit(axis) }, up);
      return;
    }
    const each = Math.max(1, Math.ceil(n / Math.max(2, Math.floor(box.width / 120))));
    const at = Array.from({ length: Math.ceil(n / each) }, (_, i) => i * each);
    frame(pen, box, look, { low: 0, high: n, name: unit(axis), at, words: (i) => short(axis, i) }, up);
  }

  at(x: number, y: number): number | null {
    const { box } = this;
    if (x < box.left || x > box.left + box.width || y < box.top - 8 || y > box.top + box.height + 8) return null;
    let [low, high] = [0, this.n];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (this.left(middle) <= x) low = middle;
      else high = middle;
    }
    return low;
  }

  step(cell: number, right: number, up: number): number {
    return this.bounded(cell + (right || up));
  }

  mark(pen: Pen, cell: number): void {
    const [from, to] = [this.left(cell), this.left(cell + 1)];
    pen.strokeStyle = this.look.ink;
    pen.lineWidth = 1;
    pen.strokeRect(from - 0.5, this.box.top, Math.max(to - from, 1) + 1, this.box.height);
    pen.fillStyle = this.look.accent;
    pen.beginPath();
    pen.arc((from + to) / 2, this.y(drawn(this.part, this.what)[this.part.first + cell]!), 4.5, 0, 7);
    pen.fill();
    pen.strokeStyle = this.look.paper;
    pen.lineWidth = 1.5;
    pen.stroke();
  }
}

const ROW = 26;

export class BarDrawing extends Chart {
  private names: string[] = [];

  fit(width: number): { width: number; height: number } {
    const axis = this.view.data.along[0]!;
    this.names = Array.from({ length: this.n }, (_, i) => (axis.kind === "numbers" ? edge(axis, axis.edges![i] as number) : short(axis, i)));
    const longest = Math.max(...this.names.map((name) => name.length));
    const left = Math.min(Math.max(60, 8 * longest), 0.4 * width);
    this.box = { left, top: 8, width: width - left - 16, height: ROW * this.n };
    return { width, height: this.box.height + this.box.top + 44 };
  }

  private x(value: number): number {
    return this.box.left + ((value - this.low) / (this.high - this.low)) * this.box.width;
  }

  draw(pen: Pen): void {
    const { box, look, part, n } = this;
    const values = drawn(part, this.what);
    const { low, high } = part.figures;
    const zero = this.x(0);
    for (let i = 0; i < n; i++) {
      const middle = box.top + ROW * (i + 0.5);
      const end = this.x(values[part.first + i]!);
      pen.fillStyle = look.band;
      pen.fillRect(Math.min(zero, end), middle - 8, Math.abs(end - zero), 16);
      pen.fillStyle = look.accent;
      pen.fillRect(end - 1, middle - 8, 2, 16);
      if (this.what === "estimate" && low && high) {
        const [from, to] = [this.x(low[part.first + i]!), this.x(high[part.first + i]!)];
        pen.strokeStyle = look.ink;
        pen.lineWidth = 1.5;
        pen.beginPath();
        pen.moveTo(from, middle);
        pen.lineTo(to, middle);
        for (const x of [from, to]) {
          pen.moveTo(x, middle - 4);
          pen.lineTo(x, middle + 4);
        }
        pen.stroke();
      }
      pen.fillStyle = look.ink;
      pen.textAlign = "right";
      pen.textBaseline = "middle";
      pen.fillText(fitted(pen, this.names[i]!, box.left - 10), box.left - 8, middle);
    }
    const at = ticks(this.low, this.high, Math.max(2, Math.floor(box.width / 90)));
    frame(pen, box, look, { low: this.low, high: this.high, name: this.label, at, words: tick }, null);
  }

  at(x: number, y: number): number | null {
    const row = Math.floor((y - this.box.top) / ROW);
    return row >= 0 && row < this.n && x >= 0 ? row : null;
  }

  step(cell: number, right: number, up: number): number {
    return this.bounded(cell + (right || -up));
  }

  mark(pen: Pen, cell: number): void {
    pen.strokeStyle = this.look.ink;
    pen.lineWidth = 1.5;
    pen.strokeRect(1, this.box.top + ROW * cell + 1, this.box.left + this.box.width + 12, ROW - 2);
  }
}
