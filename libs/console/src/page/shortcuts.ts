/** Keyboard shortcuts that work outside of text fields. */

/** A key and its action. */
export interface Shortcut {
  readonly key: string;
  readonly does: string;
}

/** All shortcuts in the order of the help. */
export const SHORTCUTS = [
  { key: '?', does: 'show these keys' },
  { key: 'n', does: 'start a session' },
  { key: 'g', does: 'go to the list of sessions' },
  { key: 's', does: 'write to the session' },
  { key: 'a', does: 'go to the first pending approval' },
  { key: '1', does: 'transcript' },
  { key: '2', does: 'timeline' },
  { key: '3', does: 'statechart' },
  { key: '4', does: 'tree' },
  { key: '5', does: 'usage and budgets' },
  { key: '[', does: 'previous record' },
  { key: ']', does: 'next record' },
  { key: ',', does: 'previous step of the statechart' },
  { key: '.', does: 'next step of the statechart' },
  { key: 'l', does: 'back to the live view' },
  { key: 'f', does: 'fork at the shown record, after a confirmation' },
  { key: 't', does: 'theme: dark, light or system' },
] as const satisfies readonly Shortcut[];

/** A key of the list. */
export type ShortcutKey = (typeof SHORTCUTS)[number]['key'];

/** The used members of a keyboard event. */
export interface Pressed {
  readonly key: string;
  readonly ctrlKey: boolean;
  readonly metaKey: boolean;
  readonly altKey: boolean;
  readonly defaultPrevented: boolean;
  readonly repeat: boolean;
}

const MAY_REPEAT: ReadonlySet<string> = new Set(['[', ']', ',', '.']);

/** The pressed shortcut; null in a text field, with a modifier key, or if the event was handled. */
export function shortcutOf(pressed: Pressed, isTyping: boolean): ShortcutKey | null {
  if (isTyping || pressed.defaultPrevented || pressed.ctrlKey || pressed.metaKey || pressed.altKey) return null;
  if (pressed.repeat && !MAY_REPEAT.has(pressed.key)) return null;
  return SHORTCUTS.find(({ key }) => key === pressed.key)?.key ?? null;
}

/** Whether the focused element takes letters. */
export function takesLetters(element: Pick<Element, 'tagName' | 'getAttribute'> | null): boolean {
  if (element === null) return false;
  if (/^(TEXTAREA|SELECT)$/.test(element.tagName)) return true;
  if (element.tagName === 'INPUT')
    return !/^(checkbox|radio|range|button)$/.test(element.getAttribute('type') ?? 'text');
  return element.getAttribute('contenteditable') === 'true';
}
