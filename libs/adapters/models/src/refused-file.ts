/** Which files scripted and replay models may be read from: the policy is applied to where a path really leads. */
import { realpath } from 'node:fs/promises';
import { type Failure, type HostRules, isBelow, isRefused } from '@coxswain/protocol';

/**
 * Why a file is not read; null if it may be, or is not there. Never rejects.
 * @param path absolute.
 * @param name as the model names it, for the message.
 */
export async function refusedFile(
  rules: Pick<HostRules, 'roots' | 'refused'>,
  kind: 'script' | 'journal',
  path: string,
  name: string,
): Promise<Failure | null> {
  // A path that leads nowhere is for the reader to report.
  const real = await realpath(path).catch(() => null);
  return real === null ? null : refusedRealPath(rules, kind, real, name);
}

/**
 * The same for a file that was opened: what a link leads to now does not matter any longer.
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
