import { expect, test } from "vitest";
import { csv } from "./csv";
import { Figures, unpacked, View, type AxisData, type ViewData } from "./data";
import { drawn, Scale } from "./scale";
import { long, sentence, short, ticks, told } from "./words";

const f4 = (...values: number[]) => ({ f4: btoa(String.fromCharCode(...new Uint8Array(new Float32Array(values).buffer))) });
const names = (name: string, ...all: string[]): AxisData => ({ name, what: "labels", kind: "names", names: all });
const view = (table: Partial<ViewData["tables"][number]>, along: AxisData[], beside: AxisData[] = [], counted = "records") =>
  new View({
    name: "v", what: "cell", kind: "bars", said: [], along, beside,
    tables: [{ beside: beside.map((_, i) => i), value: f4(1, 2, 3, 4), stderr: { all: 2 }, low: { less: 2.5 }, high: { more: 2.5 }, ...table }],
  }, counted);

test("numbers are unpacked as they were written", () => {
  expect([...unpacked(f4(1.5, -2).f4, "f4")]).toEqual([1.5, -2]);
  const figures = new Figures({ beside: [], value: f4(1, 10), stderr: null, low: { less: 3 }, high: { more: 3 } }, 2);
  expect([...figures.low!, ...figures.high!]).toEqual([0, 7, 4, 13]);
  expect([...figures.spread!]).toEqual([2, 3]);
});

test("the figures of a choice stand at its place", () => {
  const found = view({}, [names("a", "x", "y")], [names("b", "u", "v")]).part([1]);
  expect([found.first, found.size]).toEqual([2, 2]);
});

test("ends of intervals are rounded outwards", () => {
  for (const [low, high] of [[12.34, 15.67], [1.23, 4.56], [1234.4, 5678.2], [3, 4]]) {
    const value = (low! + high!) / 2;
    const one = view({ value: f4(value), low: f4(low!), high: f4(high!) }, [names("a", "x")]).part([]);
    const shown = told(one, 0);
    const number = (text: string) => Number(text.replaceAll(",", ""));
    expect(number(shown.low)).toBeLessThanOrEqual(Math.fround(low!) + 1e-6);
    expect(number(shown.high)).toBeGreaterThanOrEqual(Math.fround(high!) - 1e-6);
    expect(number(shown.high) - number(shown.low)).toBeLessThan(high! - low! + (high! > 1000 ? 2 : 0.2));
  }
});

test("exact is what has no noise, and not what is cut at zero", () => {
  const cut = view({ value: f4(-50, 1, 1, 1) }, [names("a", "p", "q", "r", "s")]);
  expect(sentence(cut.part([]), 0, 0.95)).toBe("−50 records, 95 % interval 0 to 0");
  const fares = view({ value: f4(7.5, 1, 1, 1), low: f4(-3, 0, 0, 0) }, [names("a", "p", "q", "r", "s")], [], "sum of 'fare'");
  expect(sentence(fares.part([]), 0, 0.95)).toBe("sum of 'fare': 7.5, 95 % interval −3 to 10");
  const exact = view({ stderr: { all: 0 }, low: { less: 0 }, high: { more: 0 } }, [names("a", "p", "q", "r", "s")]);
  expect(sentence(exact.part([]), 2, 0.95)).toBe("3 records, exactly: the policy makes it public");
});

test("a peak neither bleaches the rest nor is cut off, as in the pictures", () => {
  const values = [...new Array(9999).fill(10), 1e6];
  const scale = new Scale(values, "estimate", false);
  expect([0, 5, 10, 1e6].map((value) => scale.share(value))).toEqual([0, 0.4, 0.8, 1]);
  expect([scale.even, scale.below, new Scale([-1, 2], "estimate", true).below]).toEqual([false, false, true]);
  expect(new Scale([1, 2, 3], "estimate", true).share(1.5)).toBe(0.5);
  expect(new Scale([0.5, 0.25], "uncertainty", true).top).toBe(0.5);
  expect(new Scale([5, 400], "estimate", true).even).toBe(true);
  expect(drawn(view({}, [names("a", "p", "q", "r", "s")]).part([]), "uncertainty")[0]).toBe(2);
});

test("cells have short names and long ones", () => {
  const hours: AxisData = { name: "t", what: "steps", kind: "times", edges: ["2026-03-07T22:00+01:00", "2026-03-07T23:00+01:00", "2026-03-08T00:00+01:00"] };
  expect([short(hours, 0), long(hours, 0), long(hours, 1)]).toEqual(["2026-03-07 22:00", "2026-03-07 22:00 to 23:00", "2026-03-07 23:00 to 2026-03-08 00:00"]);
  const days: AxisData = { ...hours, edges: ["2026-03-07T00:00-05:00", "2026-03-08T00:00-05:00"] };
  expect(short(days, 0)).toBe("2026-03-07");
  const fares: AxisData = { name: "fare", what: "bins", kind: "numbers", edges: [-5, 0, 2.5] };
  expect([short(fares, 0), long(fares, 1)]).toEqual(["−5.0", "fare 0.0 to 2.5"]);
  expect(ticks(0, 10)).toEqual([0, 2, 4, 6, 8, 10]);
  expect(ticks(-74.1, -73.7, 4)).toEqual([-74.1, -74, -73.9, -73.8, -73.7]);
});

test("a spreadsheet runs no label, and no digit is lost", () => {
  const text = csv(view({}, [names("=a", 'x,"y"', "+1")], [names("b", "u", "v")]));
  expect(text.split("\n")).toEqual([
    "b,'=a,value,stderr,low,high",
    'u,"x,""y""",1,2,0,3.5',
    "u,'+1,2,2,0,4.5",
    'v,"x,""y""",3,2,0.5,5.5',
    "v,'+1,4,2,1.5,6.5",
    "",
  ]);
});
