// Where a place of the domain lies on the map. Longitudes and latitudes lie where they are; plain numbers, and metres of
// another CRS, are put on a small square round 0°, 0°, where the map's projection is as good as flat.
import type { Place } from "./state";

export interface Plane {
  degrees: boolean;
  to: (x: number, y: number) => [number, number];
  from: (lng: number, lat: number) => [number, number];
  bounds: [number, number, number, number];
}

const SIDE = 1; // degrees

export function boundsOf(place: Place): [number, number, number, number] {
  if (place.kind === "cells") return place.bounds;
  return [place.x[0]!, place.y[0]!, place.x.at(-1)!, place.y.at(-1)!];
}

export function planeOf(place: Place): Plane {
  const bounds = boundsOf(place);
  if (place.degrees) return { degrees: true, to: (x, y) => [x, y], from: (x, y) => [x, y], bounds };
  const [x0, y0, x1, y1] = bounds;
  const scale = SIDE / Math.max(x1 - x0, y1 - y0);
  const [cx, cy] = [(x0 + x1) / 2, (y0 + y1) / 2];
  const to = (x: number, y: number): [number, number] => [(x - cx) * scale, (y - cy) * scale];
  const from = (lng: number, lat: number): [number, number] => [lng / scale + cx, lat / scale + cy];
  return { degrees: false, to, from, bounds: [...to(x0, y0), ...to(x1, y1)] };
}

/** The cell of a value among rising edges; -1 beyond them. The last edge belongs to the last cell. */
export function cellOf(edges: readonly number[], value: number): number {
  const last = edges.length - 1;
  if (!(value >= edges[0]!) || value > edges[last]!) return -1;
  let low = 0;
  let high = last;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (edges[middle]! <= value) low = middle;
    else high = middle;
  }
  return low;
}

const RADIUS = 6371008.8;

/** The outline of all places nearer than a length to a point of the map. */
export function circle(plane: Plane, lng: number, lat: number, delta: { length: number; metres: boolean }): [number, number][] {
  const points: [number, number][] = [];
  for (let i = 0; i <= 72; i++) {
    const angle = (2 * Math.PI * i) / 72;
    if (delta.metres && plane.degrees) {
      const dy = (delta.length / RADIUS) * (180 / Math.PI);
      const dx = dy / Math.max(0.01, Math.cos((lat * Math.PI) / 180));
      points.push([lng + dx * Math.cos(angle), lat + dy * Math.sin(angle)]);
    } else {
      const [x, y] = plane.from(lng, lat);
      points.push(plane.to(x + delta.length * Math.cos(angle), y + delta.length * Math.sin(angle)));
    }
  }
  return points;
}

/** Latitude to the map's own height, from 0 to 1, and back. */
export const mercator = (lat: number): number => Math.log(Math.tan(Math.PI / 4 + (lat * Math.PI) / 360));
export const latitude = (m: number): number => (360 / Math.PI) * (Math.atan(Math.exp(m)) - Math.PI / 4);
