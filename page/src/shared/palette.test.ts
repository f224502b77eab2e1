import { expect, test } from "vitest";
import { colour, css, MAPS, type MapName } from "./palette";

const light = ([r, g, b]: readonly number[]) => 0.2126 * r! + 0.7152 * g! + 0.0722 * b!;

test.each(["cividis", "viridis"] as MapName[])("%s grows lighter from end to end", (name) => {
  const shades = Array.from({ length: 101 }, (_, i) => light(colour(i / 100, name)));
  for (let i = 1; i < shades.length; i++) expect(shades[i]!).toBeGreaterThan(shades[i - 1]! - 0.6);
});

test("ends stay ends, and what is no number is the lowest", () => {
  expect(colour(-3)).toEqual(MAPS.viridis[0]);
  expect(colour(7)).toEqual(MAPS.viridis.at(-1));
  expect(colour(Number.NaN)).toEqual(MAPS.viridis[0]);
  expect(css([1, 2, 3])).toBe("rgb(1 2 3)");
});
