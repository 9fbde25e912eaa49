/** Which manifest the hosts of this process use. */
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { usageError } from '../line/cli-error.ts';
import type { Flags } from '../line/flags.ts';
import { typedIn } from './state-dir.ts';

/** The manifest of a folder, where none is named. */
export const MANIFEST_FILE = 'coxswain.yaml';

/** A manifest that a host may load. */
export interface ChosenManifest {
  readonly path: string;
  /** The content that the user trusts; undefined where the command line or the environment names the file. */
  readonly digest: string | undefined;
}

/**
 * The manifest's path: `--manifest` or `COX_MANIFEST`, where `none` means that there is none; else `coxswain.yaml` of the
 * folder in which the person typed, if it is there.
 */
export function manifestOf(
  flags: Flags,
  env: NodeJS.ProcessEnv,
): { readonly path: string; readonly isNamed: boolean } | undefined {
  const named = flags.text('manifest') ?? (env.COX_MANIFEST || undefined);
  if (named?.trim() === '') throw usageError('--manifest needs a file, or none');
  if (named === 'none') return undefined;
  if (named !== undefined) return { path: resolve(typedIn(env), named), isNamed: true };
  const usual = join(typedIn(env), MANIFEST_FILE);
  return existsSync(usual) ? { path: usual, isNamed: false } : undefined;
}

/**
 * The manifest that a host of this process may load. One that is not named needs the user's trust.
 * @param mayAsk whether a question may be put to the user: not where standard input carries a protocol.
 * @throws CliError `folder_not_trusted`; ManifestError where an unnamed one is wrong.
 */
export async function chooseManifest(
  flags: Flags,
  env: NodeJS.ProcessEnv,
  mayAsk = true,
): Promise<ChosenManifest | undefined> {
  const found = manifestOf(flags, env);
  if (found === undefined) return undefined;
  if (found.isNamed) return { path: found.path, digest: undefined };
  // Loaded only where a folder has a manifest.
  const [{ manifestOfFolder }, { FolderTrust }] = await Promise.all([
    import('./brought.ts'),
    import('./folder-trust.ts'),
  ]);
  const brought = await manifestOfFolder(found.path);
  await new FolderTrust(typedIn(env), env, mayAsk).expect(brought);
  return { path: found.path, digest: brought.digest };
}

/** Reported where a host uses the hooks of a manifest: their code runs in its process. */
export function manifestNotice({ path }: ChosenManifest): string {
  return `using the hooks of ${path} (--manifest none disables them)\n`;
}
