/** Scripts for scripted models, written where a host can read them. JSON is YAML. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { scratchFolder } from './scratch.ts';

/** One answer, as in docs/guides/scripted-models.md. */
export interface ScriptTurn {
  readonly match?: string;
  readonly text?: string;
  readonly reasoning?: string;
  readonly calls?: readonly { readonly tool: string; readonly args?: object | string }[];
  readonly usage?: { readonly input_tokens: number; readonly output_tokens: number };
  readonly delay_ms?: number;
  readonly chunk_ms?: number;
  readonly fail?: { readonly kind: string; readonly after_ms?: number };
}

/** Writes a script and returns the model's name. A turn that the list repeats is written once: a script has at most 1 MiB. */
export async function scripted(
  turns: readonly ScriptTurn[],
  options: { readonly loop?: boolean } = {},
): Promise<string> {
  const path = join(await scratchFolder('script'), 'script.yaml');
  const script = { ...options, turns };
  const hasRepeats = new Set(turns).size < turns.length;
  await writeFile(path, hasRepeats ? stringify(script, { lineWidth: 0 }) : JSON.stringify(script));
  return `scripted/${path}`;
}

/** @returns a script of `count` turns that each run a short command, and a last one that says it is done. */
export const manyTurns = (count: number): ScriptTurn[] => [
  ...Array.from({ length: count }, (_, i) => ({
    text: `turn ${i}`,
    calls: [{ tool: 'run_command', args: { command: 'sleep 0.05' } }],
  })),
  { text: 'done' },
];
