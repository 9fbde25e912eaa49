/** Cuts a result in its middle. */
import type { HookHandler } from '@coxswain/client';

const KEPT = 4_000;

/** A string in the place of a result is its new text. */
export const keepBothEnds: HookHandler<'PostToolUse'> = ({ result }) => {
  const text = result.content.map((part) => (part.type === 'text' ? part.text : `[${part.media_type}]`)).join('\n');
  if (text.length <= KEPT) return true;
  const note = `\n[${text.length} characters, the middle is left out]\n`;
  const half = Math.floor((KEPT - note.length) / 2);
  return text.slice(0, half) + note + text.slice(-half);
};
