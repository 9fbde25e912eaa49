/** Applies the policy to files of scripted and replay models, by their real paths. */
import { realpath } from 'node:fs/promises';
import { type Failure, type HostRules, isBelow, isRefused } from '@coxswain/protocol';

/**
 * The reason why a file may not be read; null if it may, or if it does not exist. Never rejects.
 * @param path absolute.
 * @param name the file's name in the model's name, for the message.
 */
export async function refusedFile(
  rules: Pick<HostRules, 'roots' | 'refused'>,
  kind: 'script' | 'journal',
  path: string,
  name: string,
): Promise<Failure | null> {
  // The reader reports a missing file.
  const real = await realpath(path).catch(() => null);
  return real === null ? null : refusedRealPath(rules, kind, real, name);
}

/**
 * The same check for an opened file, independent of later changes of links.
 * @param real its path without symbolic links.
 */
export async function refusedRealPath(
  rules: Pick<HostRules, 'roots' | 'refused'>,
  kind: 'script' | 'journal',
  real: string,
  name: string,
): Promise<Failure | null> {
  const failure = (why: string): Failure => ({
    code: 'not_allowed_by_policy',
    message: `model: the ${kind} ${name} ${why}`,
    retryable: false,
  });
  if (isRefused(rules, real)) return failure('belongs to the host; no session reads it');
  if (rules.roots === 'any') return null;
  const roots = await Promise.all(rules.roots.map((root) => realpath(root).catch(() => root)));
  if (roots.some((root) => isBelow(root, real))) return null;
  return failure(
    `leads out of the folders of this host’s policy; policy.roots allows ${rules.roots.join(', ') || 'none'}`,
  );
}
