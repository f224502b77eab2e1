// The page of a release: what is drawn, what it is chosen by, what is said of a cell, the table, and the download.
import { sized, theme, type Drawing, type Theme } from "./canvas";
import { BarDrawing, CurveDrawing } from "./charts";
import { csv, download } from "./csv";
import { count, FORMAT, View, type AxisData, type Choice, type Figures, type PageData } from "./data";
import { fresh, make } from "./dom";
import { GridDrawing, ShapeDrawing } from "./maps";
import { drawn, Scale, uncertainty, type What } from "./scale";
import { TableOfCells } from "./table";
import { long, number, place, sentence, short, tick, ticks, unit } from "./words";
import "./report.css";

const FEW = 12; // of names that a list shows better than a slider

class Page {
  private readonly views: View[];
  private view: View;
  private choice: Choice = [];
  private what: What = "estimate";
  private selected: number | null = null;
  private hovered: number | null = null;
  private drawing: Drawing | null = null;
  private readonly plain = document.createElement("canvas");
  private readonly scales = new WeakMap<Figures, Map<string, Scale>>();
  private readonly picker = make("div", { class: "row" });
  private readonly controls = make("div", { class: "controls" });
  private readonly canvas = make("canvas", { tabindex: "0", role: "application" });
  private readonly figure = make("div", { class: "figure" });
  private readonly tip = make("div", { class: "tip", "aria-hidden": "true", hidden: true });
  private readonly legend = make("div", { class: "legend" });
  private readonly readout = make("p", { class: "readout", role: "status" });
  private readonly away = make("p", { class: "notes" });
  private readonly notes = make("ul", { class: "notes" });
  private readonly table: TableOfCells;
  private readonly heading = make("h2");

  constructor(
    private readonly data: PageData,
    root: HTMLElement,
  ) {
    this.views = data.views.map((view) => new View(view, data.counted));
    this.view = this.views[0]!;
    this.table = new TableOfCells(data.confidence);
    this.heading.id = fresh("heading");
    this.readout.id = fresh("readout");
    this.canvas.setAttribute("aria-describedby", this.readout.id);
    this.figure.append(this.canvas, this.tip);
    const shown = make("section", { "aria-labelledby": this.heading.id });
    const save = make("button", { type: "button" }, "Download CSV");
    save.addEventListener("click", () => download(`${data.title.replaceAll(/[^\p{L}\p{N}]+/gu, "-").slice(0, 60)}.csv`, csv(this.view)));
    shown.append(this.heading, this.picker, this.controls, this.figure, this.legend, this.away, this.readout, this.notes);
    root.replaceChildren(shown, this.table.element, make("p", { class: "row" }, save));
    this.listen();
    if (this.views.length > 1) this.pickers();
    this.open(this.view);
  }

  /** Which of several views is looked at. */
  private pickers(): void {
    const id = fresh("view");
    const select = make("select", { id });
    this.views.forEach((view, i) => select.append(make("option", { value: String(i) }, view.data.name)));
    select.addEventListener("change", () => this.open(this.views[Number(select.value)]!));
    this.picker.append(make("label", { for: id }, "Show"), select);
  }

  private open(view: View): void {
    this.view = view;
    this.choice = view.data.beside.map(() => null);
    this.what = "estimate";
    this.selected = this.hovered = null;
    this.heading.textContent = `Estimated ${view.counted} by ${view.data.name}`;
    this.controls.replaceChildren(...view.data.beside.map((axis, i) => this.control(axis, i)));
    const { stderr, low } = view.figures([]);
    if ((stderr || low) && view.data.kind !== "table") this.controls.append(this.toggle());
    const notes = [...view.data.said];
    if (view.data.ground?.note) notes.push(view.data.ground.note);
    if (!stderr && !low) notes.push("the error of these estimates depends on the data and is not stated");
    else if (!low) notes.push("no intervals: the smoothing of these estimates depends on the data");
    else if (!stderr) notes.push("the intervals hold; the standard error depends on the data and is not stated");
    if (view.data.kind === "table") notes.push(`${view.size.toLocaleString("en")} names are too many to draw: they are in the table`);
    this.notes.replaceChildren(...notes.map((note) => make("li", {}, note)));
    this.notes.hidden = notes.length === 0;
    this.figure.hidden = this.legend.hidden = view.data.kind === "table";
    this.readout.hidden = view.data.kind === "table";
    this.refresh();
  }

  /** A slider or a list for a factor beside; at first all of it together. */
  private control(axis: AxisData, i: number): HTMLElement {
    const id = fresh("choice");
    const all = "all together";
    const n = count(axis);
    const set = (cell: number | null) => {
      this.choice[i] = cell;
      this.refresh();
    };
    if (axis.kind === "names" && n <= FEW) {
      const select = make("select", { id }, make("option", { value: "" }, all));
      axis.names!.forEach((name, cell) => select.append(make("option", { value: String(cell) }, name)));
      select.addEventListener("change", () => set(select.value === "" ? null : Number(select.value)));
      return make("div", { class: "control" }, make("label", { for: id }, unit(axis)), select);
    }
    const output = make("output", { for: id }, all);
    const slider = make("input", { id, type: "range", min: "0", max: String(n), step: "1", value: "0", "aria-valuetext": all });
    slider.addEventListener("input", () => {
      const cell = slider.value === "0" ? null : Number(slider.value) - 1;
      const words = cell === null ? all : long(axis, cell);
      output.textContent = words;
      slider.setAttribute("aria-valuetext", words);
      set(cell);
    });
    return make("div", { class: "control wide" }, make("label", { for: id }, unit(axis)), slider, output);
  }

  /** Estimates, or how uncertain they are. */
  private toggle(): HTMLElement {
    const group = make("fieldset", { class: "control" }, make("legend", {}, "Show the"));
    const name = fresh("what");
    for (const [what, words] of [["estimate", "estimate"], ["uncertainty", "uncertainty"]] as const) {
      const id = fresh("what");
      const radio = make("input", { type: "radio", name, id, value: what, checked: what === this.what });
      radio.addEventListener("change", () => {
        this.what = what;
        this.refresh();
      });
      group.append(make("span", { class: "radio" }, radio, make("label", { for: id }, words)));
    }
    return group;
  }

  private get part() {
    return this.view.part(this.choice);
  }

  private chosen(): string {
    return this.view.data.beside
      .map((axis, i) => `${axis.name}: ${this.choice[i] == null ? "all together" : short(axis, this.choice[i]!)}`)
      .join(", ");
  }

  refresh(): void {
    const chosen = this.chosen();
    const what = this.what === "estimate" ? `Estimated ${this.view.counted}` : "Uncertainty";
    this.table.show(this.view, this.part, `Every ${this.view.data.what}${chosen ? ` (${chosen})` : ""}`);
    this.canvas.setAttribute("aria-label", `${what} per ${this.view.data.what}${chosen ? `, ${chosen}` : ""}. Arrow keys move from one to the next.`);
    const there = new Set(this.view.data.rows);
    const cells = Array.from({ length: this.view.data.kind === "shapes" ? this.view.size : 0 }, (_, cell) => cell);
    const away = cells.filter((cell) => !there.has(cell));
    this.away.textContent = away
      .map((cell) => `Not on the map: ${place(this.view, cell)}, ${sentence(this.part, cell, this.data.confidence)}.`)
      .join(" ");
    this.away.hidden = away.length === 0;
    this.paint();
    this.speak();
  }

  private speak(): void {
    const word = { grid: "map", shapes: "map", curve: "curve", bars: "chart", table: "table" }[this.view.data.kind];
    this.readout.textContent =
      this.selected === null
        ? `Point at the ${word}, or go to it with Tab and move with the arrow keys, to read values and intervals.`
        : `${place(this.view, this.selected)}: ${sentence(this.part, this.selected, this.data.confidence)}.`;
  }

  paint(): void {
    if (this.view.data.kind === "table") return;
    const look = theme();
    const room = Math.max(240, Math.min(this.figure.parentElement!.clientWidth, 860));
    const scale = this.scale(look.dark);
    this.drawing = this.draws(scale, look);
    const { width, height } = this.drawing.fit(room);
    this.drawing.draw(sized(this.canvas, width, height), width, height);
    this.plain.width = this.canvas.width;
    this.plain.height = this.canvas.height;
    this.plain.getContext("2d")!.drawImage(this.canvas, 0, 0);
    this.mark();
    const map = this.view.data.kind === "grid" || this.view.data.kind === "shapes";
    this.legend.hidden = !map;
    if (map) this.key(scale);
  }

  /** The drawing as it is, with the cell that is pointed at, or else chosen. */
  private mark(): void {
    const pen = this.canvas.getContext("2d")!;
    pen.save();
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, this.canvas.width, this.canvas.height);
    pen.drawImage(this.plain, 0, 0);
    pen.restore();
    const marked = this.hovered ?? this.selected;
    if (marked !== null) this.drawing?.mark(pen, marked);
  }

  /** One scale for all cells of the factors beside, so that their maps can be compared. */
  private scale(dark: boolean): Scale {
    const { figures } = this.part;
    const key = `${this.what} ${dark}`;
    const kept = this.scales.get(figures) ?? new Map<string, Scale>();
    this.scales.set(figures, kept);
    if (!kept.has(key)) kept.set(key, new Scale(drawn(this.part, this.what), this.what, dark));
    return kept.get(key)!;
  }

  private draws(scale: Scale, look: Theme): Drawing {
    const { view, part, what } = this;
    switch (view.data.kind) {
      case "grid":
        return new GridDrawing(view, part, what, scale, look);
      case "shapes":
        return new ShapeDrawing(view, part, what, scale, look);
      case "bars":
        return new BarDrawing(view, part, what, look);
      default:
        return new CurveDrawing(view, part, what, look);
    }
  }

  /** The scale of colours with numbers below it. */
  private key(scale: Scale): void {
    const width = Math.min(420, this.canvas.clientWidth || 420);
    const strip = make("canvas", { "aria-hidden": "true" });
    const pen = sized(strip, width, 34);
    for (let x = 0; x < width; x++) {
      pen.fillStyle = scale.shade(x / (width - 1));
      pen.fillRect(x, 0, 1, 14);
    }
    pen.fillStyle = theme().soft;
    pen.textBaseline = "top";
    let free = -Infinity;
    const last = number(scale.top);
    const room = width - pen.measureText(last).width - 8;
    for (const value of ticks(0, scale.usual, 4)) {
      const x = scale.share(value) * (width - 1);
      const text = tick(value);
      const half = pen.measureText(text).width / 2;
      const middle = Math.max(x, half);
      if (middle - half < free || middle + half > room) continue;
      free = middle + half + 6;
      pen.textAlign = "center";
      pen.fillText(text, middle, 18);
    }
    pen.textAlign = "right";
    pen.fillText(last, width, 18);
    const what = this.what === "estimate" ? `estimated ${this.view.counted} per ${this.view.data.what}` : `${uncertainty(this.part)} of a ${this.view.data.what}`;
    const stretched = scale.even ? "" : `; colours above ${number(scale.usual)} are stretched`;
    const below = scale.below ? "; what is below 0 has the colour of 0" : "";
    this.legend.replaceChildren(strip, make("p", {}, `${what}, from 0 to ${last}${stretched}${below}`));
  }

  private listen(): void {
    const moves: Record<string, [number, number]> = {
      ArrowLeft: [-1, 0],
      ArrowRight: [1, 0],
      ArrowUp: [0, 1],
      ArrowDown: [0, -1],
      PageUp: [0, 10],
      PageDown: [0, -10],
    };
    this.canvas.addEventListener("keydown", (event) => {
      const move = moves[event.key];
      if (!this.drawing || event.altKey || event.ctrlKey || event.metaKey) return;
      if (event.key === "Escape") this.selected = null;
      else if (!move) return;
      else {
        const by = event.shiftKey ? 10 : 1;
        this.selected = this.selected === null ? this.drawing.begin() : this.drawing.step(this.selected, move[0] * by, move[1] * by);
      }
      event.preventDefault();
      this.hovered = null;
      this.tip.hidden = true;
      this.mark();
      this.speak();
    });
    this.canvas.addEventListener("pointermove", (event) => this.hover(event));
    this.canvas.addEventListener("pointerleave", () => {
      this.tip.hidden = true;
      if (this.hovered === null) return;
      this.hovered = null;
      this.mark();
    });
    this.canvas.addEventListener("click", (event) => {
      this.selected = this.drawing?.at(event.offsetX, event.offsetY) ?? null;
      this.mark();
      this.speak();
    });
    new ResizeObserver(() => this.paint()).observe(this.figure.parentElement ?? this.figure);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.paint());
  }

  private hover(event: PointerEvent): void {
    const cell = this.drawing?.at(event.offsetX, event.offsetY) ?? null;
    if (cell !== this.hovered) {
      this.hovered = cell;
      this.mark();
    }
    this.tip.hidden = cell === null;
    if (cell === null) return;
    const [first, ...rest] = sentence(this.part, cell, this.data.confidence).split(", ");
    this.tip.replaceChildren(make("strong", {}, first!), ...rest.map((one) => make("span", {}, one)), make("span", {}, place(this.view, cell)));
    const left = Math.min(event.offsetX + 14, Math.max(0, this.canvas.clientWidth - this.tip.offsetWidth - 4));
    this.tip.style.left = `${left}px`;
    this.tip.style.top = `${event.offsetY + 18}px`;
  }
}

const root = document.getElementById("report");
const data = JSON.parse(document.getElementById("data")?.textContent ?? "null") as PageData | null;
if (root && data?.format === FORMAT) new Page(data, root);
else if (root) root.textContent = "This page and its script do not belong together: the file was changed.";

