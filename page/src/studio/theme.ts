// Light and dark: as the system has it, or as was chosen here.
import { effect, signal } from "@preact/signals";

export type Theme = "auto" | "light" | "dark";

const KEPT = "sfumato-theme";
const dark = matchMedia("(prefers-color-scheme: dark)");

export const theme = signal<Theme>((localStorage.getItem(KEPT) as Theme | null) ?? "auto");
/** Changes whenever colours do. */
export const describedTheme = signal("");

effect(() => {
  localStorage.setItem(KEPT, theme.value);
  if (theme.value === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme.value;
  describedTheme.value = `${theme.value} ${dark.matches}`;
});
dark.addEventListener("change", () => (describedTheme.value = `${theme.value} ${dark.matches}`));
