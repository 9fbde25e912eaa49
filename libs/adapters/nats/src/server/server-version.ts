import { cutText } from '@coxswain/protocol';
import { CommandFailedError, runCommand } from './run-command.ts';
import { NatsServerTooOldError, NatsServerUnusableError } from './server-errors.ts';

/** The oldest server that knows every setting Coxswain uses; older ones silently ignore what they do not know. */
export const minimumServerVersion = '2.12.0';

/** Bound for `nats-server --version`, in milliseconds; generous, since a cold disk may have to load the binary. */
const versionTimeoutMs = 20_000;

/**
 * Whether a version, as a server states it (`2.15.1`, `v2.15.1`, `2.16.0-dev`), is `minimum` or newer. A pre-release
 * counts as older than its release. A version that cannot be read is not new enough.
 */
export function serverVersionAtLeast(version: string, minimum: string): boolean {
  const actual = parseVersion(version);
  const wanted = parseVersion(minimum);
  if (!actual || !wanted) return false;
  for (const part of ['major', 'minor', 'patch'] as const) {
    if (actual[part] !== wanted[part]) return actual[part] > wanted[part];
  }
  return !actual.preRelease || wanted.preRelease;
}

/**
 * Asks a binary for its version, e.g. `2.15.1`.
 *
 * @throws NatsServerUnusableError when it does not run within 20 s or is not a nats-server.
 */
export async function readServerVersion(binary: string, signal?: AbortSignal): Promise<string> {
  let output: string;
  try {
    output = await runCommand(binary, ['--version'], { timeoutMs: versionTimeoutMs, signal });
  } catch (error) {
    const reason = error instanceof CommandFailedError ? error.reason : String(error);
    throw new NatsServerUnusableError(binary, reason, { cause: error });
  }
  const version = /^nats-server:? v?(\S+)/m.exec(output)?.[1];
  if (version === undefined || !parseVersion(version)) {
    throw new NatsServerUnusableError(binary, `"--version" answered ${JSON.stringify(cutText(output.trim(), 200))}`);
  }
  return version;
}

/**
 * The version of a binary, checked against {@link minimumServerVersion}.
 *
 * @throws NatsServerUnusableError when it is not a nats-server that runs here.
 * @throws NatsServerTooOldError when it is older than the minimum.
 */
export async function requireServerVersion(binary: string, signal?: AbortSignal): Promise<string> {
  const version = await readServerVersion(binary, signal);
  if (!serverVersionAtLeast(version, minimumServerVersion)) {
    throw new NatsServerTooOldError(binary, version, minimumServerVersion);
  }
  return version;
}

function parseVersion(text: string) {
  const match = /^v?(\d+)\.(\d+)\.(\d+)(-\S+)?$/.exec(text.trim());
  if (!match) return undefined;
  return {
    major: Number(match[1]),
    minor: Number(match[2]),
    patch: Number(match[3]),
    preRelease: match[4] !== undefined,
  };
}
