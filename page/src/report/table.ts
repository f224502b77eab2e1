// The figures as a table, a page at a time: as the cells come, or the largest first.
import type { Part, View } from "./data";
import { fresh, make } from "./dom";
import { long, percent, told, unit } from "./words";

const ROWS = 25;

export class TableOfCells {
  readonly element = make("section", { class: "table" });
  private readonly body = make("tbody");
  private readonly caption = make("caption");
  private readonly where = make("p", { role: "status" });
  private readonly buttons: HTMLButtonElement[];
  private readonly order: HTMLSelectElement;
  private page = 0;
  private sorted: Uint32Array = new Uint32Array(0);
  private view: View | null = null;
  private part: Part | null = null;
  private readonly head = make("tr");

  constructor(private readonly confidence: number) {
    const heading = fresh("heading");
    const order = fresh("order");
    this.order = make("select", { id: order }, make("option", { value: "plain" }, "in their order"), make("option", { value: "largest" }, "largest first"));
    this.order.addEventListener("change", () => this.show(this.view!, this.part!, this.caption.textContent!));
    const moves: [string, string, () => number][] = [
      ["First", "first rows", () => 0],
      ["Back", "rows before", () => this.page - 1],
      ["Next", "rows after", () => this.page + 1],
      ["Last", "last rows", () => this.pages - 1],
    ];
    this.buttons = moves.map(([name, label, to]) => {
      const button = make("button", { type: "button", "aria-label": `${name}: ${label}` }, name);
      button.addEventListener("click", () => this.turn(to()));
      return button;
    });
    const scroll = make("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Rows of the table" });
    scroll.append(make("table", {}, this.caption, make("thead", {}, this.head), this.body));
    const nav = make("nav", { "aria-label": "Pages of the table", class: "row" }, ...this.buttons, this.where);
    const choice = make("div", { class: "row" }, make("label", { for: order }, "Rows"), this.order);
    this.element.setAttribute("aria-labelledby", heading);
    this.element.append(make("h2", { id: heading }, "Table"), choice, scroll, nav);
  }

  private get pages(): number {
    return Math.max(1, Math.ceil(this.sorted.length / ROWS));
  }

  show(view: View, part: Part, caption: string): void {
    if (view !== this.view) this.page = 0;
    this.view = view;
    this.part = part;
    this.caption.textContent = caption;
    this.sorted = Uint32Array.from({ length: part.size }, (_, i) => i);
    if (this.order.value === "largest") {
      const { value } = part.figures;
      this.sorted.sort((one, other) => value[part.first + other]! - value[part.first + one]! || one - other);
    }
    const names = view.data.along.map((axis) => unit(axis, view.data.ground?.unit));
    const figures = ["estimate", `${percent(this.confidence)} from`, "to", "standard error"];
    this.head.replaceChildren(
      ...names.map((name) => make("th", { scope: "col" }, name)),
      ...figures.map((name) => make("th", { scope: "col", class: "number" }, name)),
    );
    this.turn(Math.min(this.page, this.pages - 1));
  }

  private turn(page: number): void {
    this.page = Math.min(Math.max(page, 0), this.pages - 1);
    const [view, part] = [this.view!, this.part!];
    const [from, to] = [this.page * ROWS, Math.min((this.page + 1) * ROWS, this.sorted.length)];
    this.body.replaceChildren(
      ...Array.from(this.sorted.subarray(from, to), (cell) => {
        const { value, low, high, stderr } = told(part, cell);
        const keys = view.cells(cell).map((at, i) => long(view.data.along[i]!, at).replace(`${view.data.along[i]!.name} `, ""));
        return make(
          "tr",
          {},
          ...keys.map((key, i) => make(i === 0 ? "th" : "td", i === 0 ? { scope: "row" } : {}, key)),
          ...[value, low || "not known", high || "not known", stderr || "not known"].map((text) => make("td", { class: "number" }, text)),
        );
      }),
    );
    const count = this.sorted.length.toLocaleString("en");
    this.where.textContent = `Rows ${(from + 1).toLocaleString("en")} to ${to.toLocaleString("en")} of ${count}`;
    const [first, back, next, last] = this.buttons;
    first!.disabled = back!.disabled = this.page === 0;
    next!.disabled = last!.disabled = this.page === this.pages - 1;
  }
}
