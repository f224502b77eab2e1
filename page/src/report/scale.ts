// Scales of colours: from nothing to the largest value, so that no peak is cut off. A few peaks do not bleach the rest:
// then nearly all cells have the lower four fifths of the colours, and the peaks the upper one. As in the pictures that
// `release.plot` draws.
import type { Part } from "./data";

type Rgb = readonly [number, number, number];

const BY_THEME: Record<"estimate" | "uncertainty", readonly Rgb[]> = {
  // magma and cividis, each from dark to light
  estimate: [
    [0, 0, 4], [24, 15, 61], [68, 15, 118], [114, 31, 129], [158, 47, 127],
    [205, 64, 113], [241, 96, 93], [253, 150, 104], [254, 202, 141], [252, 253, 191],
  ],
  uncertainty: [
    [0, 34, 78], [17, 54, 112], [59, 73, 108], [87, 93, 109], [112, 113, 115],
    [138, 134, 120], [165, 156, 116], [195, 179, 105], [254, 232, 56],
  ],
};
const USUAL = 0.998;
const FAR = 2;
const BODY = 0.8;

/** Linear between the values, as NumPy has it; of none −∞. */
function quantile(sorted: Float64Array, share: number): number {
  const at = share * (sorted.length - 1);
  const low = sorted[Math.floor(at)] ?? -Infinity;
  return low + (at % 1) * ((sorted[Math.ceil(at)] ?? low) - low || 0);
}

export type What = keyof typeof BY_THEME;

export class Scale {
  readonly top: number;
  readonly usual: number;
  /** Whether some values are below zero; they have its colour. */
  readonly below: boolean;
  private readonly shades: Uint8ClampedArray;

  constructor(values: ArrayLike<number>, what: What, dark: boolean) {
    const known = Float64Array.from(values).filter(Number.isFinite).sort();
    this.below = (known[0] ?? 0) < 0;
    const least = what === "estimate" ? 1 : 1e-9;
    const usual = Math.max(quantile(known, USUAL), least);
    this.top = Math.max(known.at(-1) ?? usual, usual);
    this.usual = this.top <= FAR * usual ? this.top : usual;
    const points = dark ? BY_THEME[what] : [...BY_THEME[what]].reverse();
    this.shades = new Uint8ClampedArray(3 * 256);
    for (let i = 0; i < 256; i++) {
      const at = (i / 255) * (points.length - 1);
      const low = Math.min(Math.floor(at), points.length - 2);
      for (let c = 0; c < 3; c++) {
        this.shades[3 * i + c] = points[low]![c]! + (at - low) * (points[low + 1]![c]! - points[low]![c]!);
      }
    }
  }

  get even(): boolean {
    return this.usual === this.top;
  }

  share(value: number): number {
    if (!(value > 0)) return 0;
    if (this.even) return Math.min(value / this.top, 1);
    if (value <= this.usual) return (BODY * value) / this.usual;
    return BODY + (1 - BODY) * Math.min(Math.log(value / this.usual) / Math.log(this.top / this.usual), 1);
  }

  /** Writes a colour into pixels. */
  paint(value: number, pixels: Uint8ClampedArray, at: number): void {
    const shade = 3 * Math.round(255 * this.share(value));
    pixels[at] = this.shades[shade]!;
    pixels[at + 1] = this.shades[shade + 1]!;
    pixels[at + 2] = this.shades[shade + 2]!;
    pixels[at + 3] = 255;
  }

  css(value: number): string {
    return this.shade(this.share(value));
  }

  shade(share: number): string {
    const at = 3 * Math.round(255 * share);
    return `rgb(${this.shades[at]} ${this.shades[at + 1]} ${this.shades[at + 2]})`;
  }
}

/** What uncertainty is told by. */
export const uncertainty = (part: Part): string =>
  part.figures.stderr ? "standard error" : "half the width of an interval";

/** What is drawn of a part: its estimates, or how uncertain they are. */
export const drawn = (part: Part, what: What): ArrayLike<number> =>
  what === "estimate" ? part.figures.value : part.figures.spread!;
