// Maps: the cells of a grid, or regions, hexagons and roads with their outlines, at their true proportions.
import { bar, frame, type Box, type Drawing, type Pen, type Theme } from "./canvas";
import { count, unpacked, type Ground, type LinesData, type Part, type View } from "./data";
import { drawn, type Scale, type What } from "./scale";


const NARROW = 360;

abstract class MapDrawing implements Drawing {
  protected box: Box = { left: 0, top: 0, width: 1, height: 1 };
  protected readonly ground: Ground;

  constructor(
    protected readonly view: View,
    protected readonly part: Part,
    protected readonly what: What,
    protected readonly scale: Scale,
    protected readonly look: Theme,
  ) {
    this.ground = view.data.ground!;
  }

  abstract at(x: number, y: number): number | null;
  abstract step(cell: number, right: number, up: number): number;
  abstract begin(): number;
  abstract mark(pen: Pen, cell: number): void;
  protected abstract cells(pen: Pen): void;

  fit(width: number): { width: number; height: number } {
    const [x0, y0, x1, y1] = this.ground.bounds;
    const left = width < NARROW ? 44 : 56;
    const inner = width - left - 14;
    const true_ = (inner * (y1 - y0) * this.ground.aspect) / (x1 - x0);
    const most = Math.max(260, Math.min(720, 0.78 * innerHeight));
    this.box = { left, top: 28, width: inner, height: Math.min(Math.max(true_, 60), most) };
    if (true_ > most) this.box.width = Math.max((inner * most) / true_, 60);
    return { width: left + this.box.width + 14, height: this.box.height + this.box.top + 44 };
  }

  draw(pen: Pen): void {
    const { box, ground, look } = this;
    const [x0, y0, x1, y1] = ground.bounds;
    pen.save();
    pen.beginPath();
    pen.rect(box.left, box.top, box.width, box.height);
    pen.clip();
    this.cells(pen);
    if (this.view.data.lines) outlines(pen, this.view.data.lines, ground, box, look);
    pen.restore();
    const side = (name: string) => (ground.unit ? `${name} (${ground.unit})` : name);
    const [across, up] = this.names().map(side);
    frame(pen, box, look, { low: x0, high: x1, name: across! }, { low: y0, high: y1, name: up! });
    if (ground.metres !== null) bar(pen, box, (ground.metres * (x1 - x0)) / box.width);
  }

  private names(): string[] {
    if (this.view.data.kind === "grid") return this.view.data.along.map((axis) => axis.name);
    return this.ground.unit === "degrees" ? ["longitude", "latitude"] : ["x", "y"];
  }

  protected x(value: number): number {
    const [x0, , x1] = this.ground.bounds;
    return this.box.left + ((value - x0) / (x1 - x0)) * this.box.width;
  }

  protected y(value: number): number {
    const [, y0, , y1] = this.ground.bounds;
    return this.box.top + ((y1 - value) / (y1 - y0)) * this.box.height;
  }
}

export class GridDrawing extends MapDrawing {
  private readonly nx = count(this.view.data.along[0]!);
  private readonly ny = count(this.view.data.along[1]!);

  private edges(i: 0 | 1): number[] {
    return this.view.data.along[i]!.edges as number[];
  }

  protected cells(pen: Pen): void {
    const { nx, ny, scale, part } = this;
    const values = drawn(part, this.what);
    const pixels = new ImageData(nx, ny);
    for (let x = 0; x < nx; x++) {
      for (let y = 0; y < ny; y++) {
        scale.paint(values[part.first + x * ny + y]!, pixels.data, 4 * ((ny - 1 - y) * nx + x));
      }
    }
    const small = document.createElement("canvas");
    small.width = nx;
    small.height = ny;
    small.getContext("2d")!.putImageData(pixels, 0, 0);
    pen.imageSmoothingEnabled = false;
    const [across, up] = [this.edges(0), this.edges(1)];
    if (even(across) && even(up)) {
      pen.drawImage(small, this.box.left, this.box.top, this.box.width, this.box.height);
      return;
    }
    for (let x = 0; x < nx; x++) {
      for (let y = 0; y < ny; y++) {
        const [left, top] = [this.x(across[x]!), this.y(up[y + 1]!)];
        const [width, height] = [this.x(across[x + 1]!) - left, this.y(up[y]!) - top];
        pen.drawImage(small, x, ny - 1 - y, 1, 1, left, top, width + 0.5, height + 0.5);
      }
    }
  }

  at(x: number, y: number): number | null {
    const [x0, y0, x1, y1] = this.ground.bounds;
    const { box } = this;
    const across = find(this.edges(0), x0 + ((x - box.left) / box.width) * (x1 - x0));
    const up = find(this.edges(1), y1 - ((y - box.top) / box.height) * (y1 - y0));
    return across < 0 || up < 0 ? null : across * this.ny + up;
  }

  step(cell: number, right: number, up: number): number {
    const x = Math.min(Math.max(Math.floor(cell / this.ny) + right, 0), this.nx - 1);
    const y = Math.min(Math.max((cell % this.ny) + up, 0), this.ny - 1);
    return x * this.ny + y;
  }

  begin(): number {
    return Math.floor(this.nx / 2) * this.ny + Math.floor(this.ny / 2);
  }

  mark(pen: Pen, cell: number): void {
    const [x, y] = [Math.floor(cell / this.ny), cell % this.ny];
    const [across, up] = [this.edges(0), this.edges(1)];
    const [left, top] = [this.x(across[x]!), this.y(up[y + 1]!)];
    rim(pen, new Rectangle(left, top, this.x(across[x + 1]!) - left, this.y(up[y]!) - top).path);
  }
}

class Rectangle {
  readonly path = new Path2D();
  constructor(left: number, top: number, width: number, height: number) {
    const more = Math.max(0, (5 - Math.min(width, height)) / 2); // small cells are seen too
    this.path.rect(left - more, top - more, width + 2 * more, height + 2 * more);
  }
}

/** A rim that is seen on light and on dark. */
function rim(pen: Pen, path: Path2D): void {
  pen.lineJoin = "round";
  for (const [colour, wide] of [["#fff", 5], ["#000", 2.5]] as const) {
    pen.strokeStyle = colour;
    pen.lineWidth = wide;
    pen.stroke(path);
  }
}

const even = (edges: number[]): boolean => {
  const step = (edges.at(-1)! - edges[0]!) / (edges.length - 1);
  return edges.every((edge, i) => Math.abs(edge - edges[0]! - i * step) < 1e-3 * step);
};

/** The cell that holds a number; −1 beyond the edges. */
function find(edges: number[], value: number): number {
  if (!(value >= edges[0]!) || value > edges.at(-1)!) return -1;
  let [low, high] = [0, edges.length - 1];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (edges[middle]! <= value) low = middle;
    else high = middle;
  }
  return low;
}

/** Lines of whole numbers from the lower left corner of the map, as x, y, x, y, … */
class Lines {
  readonly points: Int16Array;
  readonly starts: Uint32Array;
  constructor(readonly data: LinesData) {
    this.points = unpacked(data.points, "i2");
    const counts = unpacked(data.lines, "u4");
    this.starts = new Uint32Array(counts.length + 1);
    counts.forEach((many, i) => (this.starts[i + 1] = this.starts[i]! + many));
  }

  trace(path: Path2D, line: number, ground: Ground, box: Box): void {
    const [x0, y0, x1, y1] = ground.bounds;
    const across = (this.data.step * box.width) / (x1 - x0);
    const up = (this.data.step * box.height) / (y1 - y0);
    for (let i = this.starts[line]!; i < this.starts[line + 1]!; i++) {
      const [x, y] = [box.left + this.points[2 * i]! * across, box.top + box.height - this.points[2 * i + 1]! * up];
      if (i === this.starts[line]) path.moveTo(x, y);
      else path.lineTo(x, y);
    }
  }
}

const READ = new WeakMap<LinesData, Lines>();
function read(data: LinesData): Lines {
  let found = READ.get(data);
  if (!found) READ.set(data, (found = new Lines(data)));
  return found;
}

function outlines(pen: Pen, data: LinesData, ground: Ground, box: Box, look: Theme): void {
  const lines = read(data);
  const path = new Path2D();
  for (let line = 0; line + 1 < lines.starts.length; line++) lines.trace(path, line, ground, box);
  pen.lineJoin = "round";
  for (const [colour, wide] of [[look.dark ? "#0009" : "#fffb", 2.4], [look.dark ? "#ffffffc0" : "#22252bc0", 1]] as const) {
    pen.strokeStyle = colour;
    pen.lineWidth = wide;
    pen.stroke(path);
  }
}

/** Regions, hexagons and roads. The shape of a row that lies nowhere is missing. */
export class ShapeDrawing extends MapDrawing {
  private readonly lines = read(this.view.data.shapes!);
  private readonly rows = this.view.data.rows!;
  private readonly closed = this.view.data.shapes!.closed === true;
  private readonly probe = document.createElement("canvas").getContext("2d")!;
  private paths: Path2D[] = [];
  private middles: [number, number][] = [];
  private boxes: [number, number, number, number][] = [];

  override fit(width: number): { width: number; height: number } {
    const found = super.fit(width);
    this.trace();
    return found;
  }

  private trace(): void {
    const groups = unpacked(this.view.data.shapes!.groups!, "u4");
    const [x0, , x1] = this.ground.bounds;
    const scale = (this.lines.data.step * this.box.width) / (x1 - x0);
    const upscale = (this.lines.data.step * this.box.height) / (this.ground.bounds[3] - this.ground.bounds[1]);
    this.paths = [];
    this.boxes = [];
    this.middles = [];
    let line = 0;
    for (const many of groups) {
      const path = new Path2D();
      let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
      for (let i = 0; i < many; i++, line++) {
        this.lines.trace(path, line, this.ground, this.box);
        if (this.closed) path.closePath();
        for (let p = this.lines.starts[line]!; p < this.lines.starts[line + 1]!; p++) {
          const x = this.box.left + this.lines.points[2 * p]! * scale;
          const y = this.box.top + this.box.height - this.lines.points[2 * p + 1]! * upscale;
          left = Math.min(left, x);
          right = Math.max(right, x);
          top = Math.min(top, y);
          bottom = Math.max(bottom, y);
        }
      }
      this.paths.push(path);
      this.boxes.push([left, top, right, bottom]);
      this.middles.push([(left + right) / 2, (top + bottom) / 2]);
    }
  }

  protected cells(pen: Pen): void {
    const { part, scale, look } = this;
    const values = drawn(part, this.what);
    const many = this.paths.length;
    pen.lineJoin = "round";
    this.paths.forEach((path, i) => {
      const colour = scale.css(values[part.first + this.rows[i]!]!);
      if (this.closed) {
        pen.fillStyle = colour;
        pen.fill(path, "evenodd");
        pen.strokeStyle = many > 4000 ? colour : look.soft;
        pen.lineWidth = many > 4000 ? 0.4 : many > 400 ? 0.25 : 0.7;
      } else {
        pen.strokeStyle = colour;
        pen.lineWidth = many > 4000 ? 1 : 2.5;
      }
      pen.stroke(path);
    });
  }

  at(x: number, y: number): number | null {
    const pen = this.probe;
    pen.lineWidth = 9;
    const near = this.closed ? 0 : 5;
    for (let i = this.paths.length - 1; i >= 0; i--) {
      const [left, top, right, bottom] = this.boxes[i]!;
      if (x < left - near || x > right + near || y < top - near || y > bottom + near) continue;
      const path = this.paths[i]!;
      if (this.closed ? pen.isPointInPath(path, x, y, "evenodd") : pen.isPointInStroke(path, x, y)) return this.rows[i]!;
    }
    return null;
  }

  /** The nearest in that direction: what lies askew counts as farther away. */
  step(cell: number, right: number, up: number): number {
    const here = this.rows.indexOf(cell);
    if (here < 0) return this.begin();
    const [x, y] = this.middles[here]!;
    let best = here;
    let least = Infinity;
    this.middles.forEach(([mx, my], i) => {
      const along = right ? (mx - x) * Math.sign(right) : (y - my) * Math.sign(up);
      const askew = Math.abs(right ? my - y : mx - x);
      if (i === here || along <= 0.5) return;
      const far = along + 2 * askew;
      if (far < least) [best, least] = [i, far];
    });
    return this.rows[best]!;
  }

  begin(): number {
    const [x, y] = [this.box.left + this.box.width / 2, this.box.top + this.box.height / 2];
    let best = 0;
    let least = Infinity;
    this.middles.forEach(([mx, my], i) => {
      const far = Math.hypot(mx - x, my - y);
      if (far < least) [best, least] = [i, far];
    });
    return this.rows[best]!;
  }

  mark(pen: Pen, cell: number): void {
    const i = this.rows.indexOf(cell);
    if (i >= 0) rim(pen, this.paths[i]!);
  }
}

