/** Reads the first prompt of a session at a terminal. */
import type { ReadStream } from 'node:tty';
import { LiveView } from '../live-view/mod.ts';
import { createStyle, wantsColour } from '../terminal/mod.ts';

/** Reads a prompt of one or more lines; null if the person leaves. Requires `isInteractive()`. */
export function typePrompt(env: NodeJS.ProcessEnv): Promise<string | null> {
  return new Promise((resolve) => {
    const live = new LiveView(process.stdout, createStyle(wantsColour(process.stdout, env)));
    const end = (text: string | null) => {
      live.close();
      resolve(text);
    };
    live.attend(process.stdin as ReadStream, { session: null, onPrompt: end, leave: () => end(null) });
  });
}
