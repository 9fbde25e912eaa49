/** Dark, light, or as the system has it. */

/** What may be chosen. */
export const THEMES = ['system', 'light', 'dark'] as const;
/** The colour scheme that the user has chosen. */
export type Theme = (typeof THEMES)[number];

const KEY = 'coxswain.theme';

/** What was chosen in this browser. */
export function chosenTheme(storage: Pick<Storage, 'getItem'>): Theme {
  return THEMES.find((theme) => theme === storage.getItem(KEY)) ?? 'system';
}

/** Chooses it, for this browser, and shows it. */
export function chooseTheme(storage: Pick<Storage, 'setItem'>, root: HTMLElement, theme: Theme): void {
  storage.setItem(KEY, theme);
  showTheme(root, theme);
}

/** Shows it. */
export function showTheme(root: HTMLElement, theme: Theme): void {
  if (theme === 'system') delete root.dataset.theme;
  else root.dataset.theme = theme;
}

/** The one after it. */
export function nextTheme(theme: Theme): Theme {
  return THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length] ?? 'system';
}
