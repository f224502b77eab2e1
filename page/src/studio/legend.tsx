// What colours mean.
import { colour, css } from "../shared/palette";
import type { Shown } from "./map";
import { number } from "./parts";

export function Legend({ shown, title, capped = true }: { shown: Shown; title: string; capped?: boolean }) {
  const stops = Array.from({ length: 11 }, (_, i) => css(colour(i / 10, shown.colours))).join(", ");
  return (
    <div class="legend">
      <span>{number(shown.low)}</span>
      <span class="ramp" style={{ background: `linear-gradient(to right, ${stops})` }} />
      <span>{number(shown.high)}
        {capped && " or more"}</span>
      <span class="title">{title}</span>
    </div>
  );
}
