// Colours that colour-blind people tell apart, and that stay in order when printed in grey: cividis and viridis, each
// given by nine points of its map and mixed linearly between them.
export type Rgb = readonly [number, number, number];

const CIVIDIS: readonly Rgb[] = [
  [0, 34, 78], [17, 54, 112], [59, 73, 108], [87, 93, 109], [112, 113, 115],
  [138, 134, 120], [165, 156, 116], [195, 179, 105], [254, 232, 56],
];
const VIRIDIS: readonly Rgb[] = [
  [68, 1, 84], [71, 44, 122], [59, 81, 139], [44, 113, 142], [33, 144, 141],
  [39, 173, 129], [92, 200, 99], [170, 220, 50], [253, 231, 37],
];
// For what may be above or below nothing: blue is less, white is none, orange is more.
const DIFFERENCE: readonly Rgb[] = [[5, 76, 133], [88, 150, 198], [178, 207, 228], [246, 246, 246], [248, 206, 160], [232, 140, 60], [156, 66, 0]];

export const MAPS = { cividis: CIVIDIS, viridis: VIRIDIS, difference: DIFFERENCE } as const;
export type MapName = keyof typeof MAPS;

/** The colour at a share from 0 to 1; shares beyond are the ends. */
export function colour(share: number, map: MapName = "viridis"): Rgb {
  const points = MAPS[map];
  const at = Math.min(1, Math.max(0, Number.isFinite(share) ? share : 0)) * (points.length - 1);
  const low = Math.min(points.length - 2, Math.floor(at));
  const one = points[low]!;
  const other = points[low + 1]!;
  const mix = (i: 0 | 1 | 2) => Math.round(one[i] + (at - low) * (other[i] - one[i]));
  return [mix(0), mix(1), mix(2)];
}

/** The same as CSS has it. */
export const css = ([r, g, b]: Rgb): string => `rgb(${r} ${g} ${b})`;
