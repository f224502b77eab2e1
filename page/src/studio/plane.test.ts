import { expect, test } from "vitest";
import { cellOf, circle, latitude, mercator, planeOf } from "./plane";
import type { Place } from "./state";

const plain: Place = { kind: "grid", name: "place", crs: null, degrees: false, x: [0, 500, 2000], y: [10, 20, 30], axes: ["x", "y"] };

test("plain numbers lie round the middle, and come back", () => {
  const plane = planeOf(plain);
  expect(plane.to(1000, 20)).toEqual([0, 0]);
  const there = plane.to(1234.5, 17.25);
  const [x, y] = plane.from(...there);
  expect(x).toBeCloseTo(1234.5, 9);
  expect(y).toBeCloseTo(17.25, 9);
  expect(plane.bounds[2] - plane.bounds[0]).toBeCloseTo(1, 12);
});

test("cells are those of the edges, half-open, and the last edge is in the last", () => {
  const edges = [0, 1, 3, 7];
  expect([-0.1, 0, 0.99, 1, 2.9, 3, 7, 7.01, Number.NaN].map((one) => cellOf(edges, one))).toEqual([-1, 0, 0, 1, 1, 2, 2, -1, -1]);
});

test("a circle of metres is as wide as it says, at any latitude", () => {
  const degrees = { ...plain, degrees: true };
  for (const lat of [0, 40, 70]) {
    const points = circle(planeOf(degrees), 10, lat, { length: 500, metres: true });
    const width = Math.max(...points.map(([x]) => x)) - Math.min(...points.map(([x]) => x));
    expect(width * 111195.08 * Math.cos((lat * Math.PI) / 180)).toBeCloseTo(1000, 0);
  }
});

test("latitudes come back", () => {
  for (const lat of [-80, 0, 41.5]) expect(latitude(mercator(lat))).toBeCloseTo(lat, 9);
});
