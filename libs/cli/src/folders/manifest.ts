/** Chooses the manifest of the hosts in this process. */
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { type Flags, usageError } from '../line/mod.ts';
import { manifestOfFolder } from './file-effects.ts';
import { FolderTrust } from './folder-trust.ts';
import { callerFolder } from './state-dir.ts';

/** The name of a folder's own manifest. */
export const MANIFEST_FILE = 'coxswain.yaml';

/** A manifest that a host may load. */
export interface ChosenManifest {
  readonly path: string;
  /** The digest of the content that the user trusts; undefined if a flag or a variable names the file. */
  readonly digest: string | undefined;
}

/**
 * The path of the manifest: `--manifest` or `COX_MANIFEST`, else `coxswain.yaml` in the user's working directory if it
 * exists. `none` selects no manifest.
 * @throws CliError with exit code 2 for an empty flag.
 */
export function manifestOf(
  flags: Flags,
  env: NodeJS.ProcessEnv,
): { readonly path: string; readonly isNamed: boolean } | undefined {
  const named = flags.text('manifest') ?? (env.COX_MANIFEST || undefined);
  if (named?.trim() === '') throw usageError('--manifest needs a file, or none');
  if (named === 'none') return undefined;
  if (named !== undefined) return { path: resolve(callerFolder(env), named), isNamed: true };
  const usual = join(callerFolder(env), MANIFEST_FILE);
  return existsSync(usual) ? { path: usual, isNamed: false } : undefined;
}

/**
 * The manifest that a host in this process may load. A manifest that is not named needs the user's trust.
 * @param mayAsk whether the user may be asked. False if standard input carries a protocol.
 * @throws CliError `folder_not_trusted`; ManifestError if a manifest that is not named is invalid.
 */
export async function chooseManifest(
  flags: Flags,
  env: NodeJS.ProcessEnv,
  mayAsk = true,
): Promise<ChosenManifest | undefined> {
  const found = manifestOf(flags, env);
  if (found === undefined) return undefined;
  if (found.isNamed) return { path: found.path, digest: undefined };
  const brought = await manifestOfFolder(found.path);
  await new FolderTrust(callerFolder(env), env, mayAsk).expect(brought);
  return { path: found.path, digest: brought.digest };
}

/** Printed when a host uses the hooks of a manifest: their code runs in its process. */
export function manifestNotice({ path }: ChosenManifest): string {
  return `using the hooks of ${path} (--manifest none disables them)\n`;
}
