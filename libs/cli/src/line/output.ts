/** The output of a command: text, JSON lines or YAML documents, and whether it prints notices. */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { Flags } from './flags.ts';

interface Output {
  /** Converts JSON lines into YAML documents; null if the output is written unchanged. */
  readonly yaml: ((lines: string) => string) | null;
  readonly isQuiet: boolean;
}

// A process may run several command lines concurrently, as the test runner does.
const current = new AsyncLocalStorage<Output>();

/** Runs a command with the output that its flags `--output` and `--quiet` select. */
export async function withOutput<T>(flags: Flags, task: () => Promise<T>): Promise<T> {
  const isYaml = flags.text('output') === 'yaml';
  const yaml = isYaml ? (await import('./yaml-documents.ts')).yamlDocuments : null;
  return current.run({ yaml, isQuiet: flags.on('quiet') }, task);
}

/**
 * Writes to standard output.
 * @param text whole lines. With `--output yaml`, each line is JSON and becomes one YAML document.
 * @returns false if the reader is slow, like `write` of a stream.
 */
export function writeOut(text: string): boolean {
  const yaml = current.getStore()?.yaml;
  return process.stdout.write(yaml ? yaml(text) : text);
}

/** Writes a notice to standard error, unless `--quiet` was given. */
export function writeNotice(text: string): void {
  if (!current.getStore()?.isQuiet) process.stderr.write(text);
}
