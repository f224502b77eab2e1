import { expect, test } from "vitest";
import { at, BEGIN, factors, hidden, hiding, put, question, type Publication } from "./tables";

test("values are put where they were, and emptied tables go", () => {
  const one = put(BEGIN, "epsilon", "2");
  expect(Object.keys(one)).toEqual(Object.keys(BEGIN));
  expect(one.epsilon).toBe("2");
  const two = put(put(one, "data.path", "a.csv"), "data.columns.x", "lon");
  expect(two.data).toEqual({ path: "a.csv", columns: { x: "lon" } });
  expect(put(put(two, "data.columns.x", ""), "data.path", undefined).data).toBeUndefined();
  expect(at(two, "data.columns.x")).toBe("lon");
  expect(at(two, "data.path.deeper")).toBeUndefined();
  expect(BEGIN.epsilon).toBe("1");
});

test.each([
  'move("500 m")',
  "move(0.007)",
  'move("500 m") | change("mode")',
  'move("250.5 m") | move("30 min", of="t") | change("mode") | change("sex")',
  "anything()",
  "presence()",
])("what the controls say is what is written: %s", (text) => {
  expect(hiding(hidden(text)!)).toBe(text);
});

test("kilometres are metres, and what no control can say is left alone", () => {
  expect(hidden('move("1.5 km")')!.move).toEqual({ length: 1500, metres: true });
  expect(hidden('move("500 m", of="place")')!.move!.length).toBe(500);
  for (const other of ['move("5 m") & move("1 h", of="t")', "adjacent()", 'move("5 m", keep="state")', "", 'move("1 m") | move("2 m")'])
    expect(hidden(other)).toBeNull();
});

test("questions follow the factors", () => {
  const wide = { ...BEGIN, domain: { ...BEGIN.domain, t: { cycle: "hour of day" }, mode: { labels: ["a"] } } } as Publication;
  expect(question(BEGIN, "ranges")).toBe("ranges()");
  expect(question(BEGIN, "histogram")).toBe("histogram()");
  expect(question(wide, "ranges")).toBe("ask(place=ranges(), t=ranges(), mode=histogram())");
  expect(factors(wide)).toEqual({ place: "place", time: "t", group: "mode", others: [] });
});
