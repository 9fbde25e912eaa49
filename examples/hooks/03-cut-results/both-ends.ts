/** Leaves out the middle of a long result. */
import { type HookHandler, rewrite } from '@coxswain/client';

const KEPT = 4_000;

/** Replaces the text of a long result. */
export const keepBothEnds: HookHandler<'PostToolUse'> = ({ result }) => {
  const text = result.content.map((part) => (part.type === 'text' ? part.text : `[${part.mediaType}]`)).join('\n');
  if (text.length <= KEPT) return undefined;
  const note = `\n[${text.length} characters, the middle is left out]\n`;
  const half = Math.floor((KEPT - note.length) / 2);
  return rewrite(text.slice(0, half) + note + text.slice(-half));
};
