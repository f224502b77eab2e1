// Elements with their attributes and children. Text is always text: nothing here reads markup.
type Child = Node | string;

export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  told: Record<string, string | boolean> = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const found = document.createElement(tag);
  for (const [name, value] of Object.entries(told)) {
    if (value === true) found.setAttribute(name, "");
    else if (value !== false) found.setAttribute(name, value);
  }
  found.append(...children);
  return found;
}

let numbered = 0;
export const fresh = (name: string): string => `${name}-${++numbered}`;
