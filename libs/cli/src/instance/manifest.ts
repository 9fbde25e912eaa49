/** Which manifest the hosts of this process use. */
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { usageError } from '../line/cli-error.ts';
import type { Flags } from '../line/flags.ts';
import { typedIn } from './state-dir.ts';

/** The manifest of a folder, where none is named. */
const MANIFEST_FILE = 'coxswain.yaml';

/**
 * The manifest's path: `--manifest` or `COX_MANIFEST`, where `none` means that there is none; else `coxswain.yaml` of the
 * folder in which the person typed, if it is there.
 */
export function manifestOf(flags: Flags, env: NodeJS.ProcessEnv): string | undefined {
  const named = flags.text('manifest') ?? (env.COX_MANIFEST || undefined);
  if (named?.trim() === '') throw usageError('--manifest needs a file, or none');
  if (named === 'none') return undefined;
  if (named !== undefined) return resolve(typedIn(env), named);
  const usual = join(typedIn(env), MANIFEST_FILE);
  return existsSync(usual) ? usual : undefined;
}

/** Told where hooks of a manifest are used: whoever starts a host in a folder should know whose code it runs. */
export function manifestNotice(manifest: string): string {
  return `hooks of ${manifest} are used (--manifest none leaves them out)\n`;
}
