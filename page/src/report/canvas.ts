// A canvas as sharp as the screen, and what all drawings share: their box, axes with names, and a bar of scale.
import { tick, ticks } from "./words";

export interface Box {
  left: number;
  top: number;
  width: number;
  height: number;
}

export interface Theme {
  ink: string;
  soft: string;
  paper: string;
  accent: string;
  band: string;
  dark: boolean;
}

export type Pen = CanvasRenderingContext2D;

/** One way of drawing a view. Cells are numbered as the table has them. */
export interface Drawing {
  /** How high it is where it has this width, and how much of the width it takes. */
  fit(width: number): { width: number; height: number };
  draw(pen: Pen, width: number, height: number): void;
  /** The cell at a point, or null. */
  at(x: number, y: number): number | null;
  /** The cell beside another one: to the right or left, upwards or downwards, by so many. */
  step(cell: number, right: number, up: number): number;
  /** The cell that the keyboard begins with. */
  begin(): number;
  /** Marks a cell, after drawing. */
  mark(pen: Pen, cell: number): void;
}

export const FONT = "12px system-ui, sans-serif";

export function theme(): Theme {
  const style = getComputedStyle(document.documentElement);
  const of = (name: string) => style.getPropertyValue(`--${name}`).trim();
  return {
    ink: of("ink"),
    soft: of("soft"),
    paper: of("paper"),
    accent: of("accent"),
    band: of("band"),
    dark: matchMedia("(prefers-color-scheme: dark)").matches,
  };
}

/** The pen of a canvas of such a size in units of CSS. */
export function sized(canvas: HTMLCanvasElement, width: number, height: number): Pen {
  const ratio = Math.min(devicePixelRatio || 1, 3);
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const pen = canvas.getContext("2d")!;
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.font = FONT;
  return pen;
}

/** Text that is cut where there is no room. */
export function fitted(pen: Pen, text: string, room: number): string {
  if (pen.measureText(text).width <= room) return text;
  let end = text.length;
  while (end > 1 && pen.measureText(`${text.slice(0, end)}…`).width > room) end--;
  return `${text.slice(0, end)}…`;
}

/** Lines, ticks and names at the left and below a box. */
export function frame(
  pen: Pen,
  box: Box,
  look: Theme,
  across: { low: number; high: number; name: string; words?: (tick: number) => string; at?: number[] },
  up: { low: number; high: number; name: string; at?: number[]; words?: (tick: number) => string } | null,
): void {
  const bottom = box.top + box.height;
  pen.strokeStyle = look.soft;
  pen.fillStyle = look.soft;
  pen.lineWidth = 1;
  pen.beginPath();
  pen.moveTo(box.left + 0.5, box.top);
  pen.lineTo(box.left + 0.5, bottom + 0.5);
  pen.lineTo(box.left + box.width, bottom + 0.5);
  pen.textBaseline = "top";
  pen.textAlign = "center";
  let free = -Infinity;
  for (const value of across.at ?? ticks(across.low, across.high, Math.max(2, Math.floor(box.width / 90)))) {
    const x = box.left + ((value - across.low) / (across.high - across.low)) * box.width;
    pen.moveTo(x, bottom);
    pen.lineTo(x, bottom + 4);
    const text = (across.words ?? tick)(value);
    const half = pen.measureText(text).width / 2;
    const middle = Math.min(Math.max(x, half), box.left + box.width + 12 - half);
    if (middle - half < free) continue;
    free = middle + half + 8;
    pen.fillText(text, middle, bottom + 6);
  }
  pen.textAlign = "right";
  pen.textBaseline = "middle";
  if (up) {
    for (const value of up.at ?? ticks(up.low, up.high, Math.max(2, Math.floor(box.height / 50)))) {
      const y = bottom - ((value - up.low) / (up.high - up.low)) * box.height;
      pen.moveTo(box.left - 4, y);
      pen.lineTo(box.left, y);
      pen.fillText((up.words ?? tick)(value), box.left - 7, y);
    }
  }
  pen.stroke();
  pen.fillStyle = look.ink;
  pen.textAlign = "center";
  pen.textBaseline = "bottom";
  pen.fillText(fitted(pen, across.name, box.width), box.left + box.width / 2, bottom + 40);
  if (up) {
    pen.textAlign = "left";
    pen.textBaseline = "bottom";
    pen.fillText(fitted(pen, up.name, box.width), 2, box.top - 10);
  }
}

/** A bar of a round length at the lower left, for so many metres a unit of CSS. */
export function bar(pen: Pen, box: Box, metres: number): void {
  const most = 0.25 * box.width * metres;
  if (!(most > 0) || most > 4e7) return;
  const power = 10 ** Math.floor(Math.log10(most));
  const length = [5, 2, 1].map((one) => one * power).find((one) => one <= most)!;
  const words = length >= 1000 ? `${length / 1000} km` : `${Number(length.toPrecision(6))} m`;
  const wide = length / metres;
  const [x, y] = [box.left + 10, box.top + box.height - 12];
  pen.textAlign = "left";
  pen.textBaseline = "bottom";
  const room = Math.max(wide, pen.measureText(words).width) + 8;
  pen.fillStyle = "rgb(255 255 255 / 85%)";
  pen.fillRect(x - 4, y - 20, room, 26);
  pen.fillStyle = "#1c1e22";
  pen.fillRect(x, y - 1, wide, 3);
  pen.fillText(words, x, y - 3);
}
