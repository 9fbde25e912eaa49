/** The colour theme: dark, light, or that of the system. */

/** The available themes. */
export const THEMES = ['system', 'light', 'dark'] as const;
/** The colour scheme that the user has chosen. */
export type Theme = (typeof THEMES)[number];

const KEY = 'coxswain.theme';

/** The theme chosen in this browser. */
export function chosenTheme(storage: Pick<Storage, 'getItem'>): Theme {
  return THEMES.find((theme) => theme === storage.getItem(KEY)) ?? 'system';
}

/** Stores a theme for this browser and applies it. */
export function chooseTheme(storage: Pick<Storage, 'setItem'>, root: HTMLElement, theme: Theme): void {
  storage.setItem(KEY, theme);
  showTheme(root, theme);
}

/** Applies a theme to the page. */
export function showTheme(root: HTMLElement, theme: Theme): void {
  if (theme === 'system') delete root.dataset.theme;
  else root.dataset.theme = theme;
}

/** The next theme in the order of the button. */
export function nextTheme(theme: Theme): Theme {
  return THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length] ?? 'system';
}
