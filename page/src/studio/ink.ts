// A colour of the style sheet as it is seen now, in light or dark, for what draws on a canvas.
export function ink(host: HTMLElement, name: string): string {
  const probe = document.createElement("i");
  probe.style.color = `var(${name})`;
  host.append(probe);
  const seen = getComputedStyle(probe).color;
  probe.remove();
  return seen;
}
