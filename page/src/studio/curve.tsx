// Numbers in a row, with the band in which the truth is.
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { ink } from "./ink";
import { describedTheme } from "./theme";

interface Props {
  names: string[];
  value: ArrayLike<number>;
  low?: ArrayLike<number>;
  high?: ArrayLike<number>;
  label: string;
  stepped?: boolean;
  height?: number;
}

export function Curve({ names, value, low, high, label, stepped = false, height = 300 }: Props) {
  const host = useRef<HTMLDivElement>(null);
  const theme = describedTheme.value;
  useEffect(() => {
    const soft = { stroke: ink(host.current!, "--soft"), grid: { stroke: ink(host.current!, "--line"), width: 1 }, ticks: { stroke: ink(host.current!, "--line"), width: 1 } };
    const steps = stepped ? { paths: uPlot.paths.stepped!({ align: 1 }) } : {};
    const quiet = { stroke: "transparent", points: { show: false }, ...steps };
    const banded = low !== undefined && high !== undefined;
    const options: uPlot.Options = {
      width: host.current!.clientWidth || 600,
      height,
      scales: { x: { time: false } },
      legend: { show: false },
      cursor: { y: false },
      series: [
        {},
        { label: "estimate", stroke: ink(host.current!, "--accent"), width: 2, points: { show: names.length <= 60, size: 6, fill: ink(host.current!, "--accent") }, ...steps },
        ...(banded ? [{ label: "high", ...quiet }, { label: "low", ...quiet }] : []),
      ],
      ...(banded ? { bands: [{ series: [2, 3] as [number, number], fill: ink(host.current!, "--band") }] } : {}),
      axes: [{ ...soft, values: (_, ticks) => ticks.map((i) => (Number.isInteger(i) ? (names[i] ?? "") : "")) }, { ...soft, size: 60 }],
    };
    const xs = Array.from(names, (_, i) => i);
    const data = [xs, Array.from(value), ...(banded ? [Array.from(high), Array.from(low)] : [])] as uPlot.AlignedData;
    const made = new uPlot(options, data, host.current!);
    const watching = new ResizeObserver(() => made.setSize({ width: host.current!.clientWidth, height }));
    watching.observe(host.current!);
    return () => {
      watching.disconnect();
      made.destroy();
    };
  }, [names, value, low, high, theme]);
  return <div class="curve" ref={host} role="img" aria-label={label} />;
}
