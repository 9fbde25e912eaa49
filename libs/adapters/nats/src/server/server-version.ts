import { cutText } from '@coxswain/protocol';
import { CommandFailedError, runCommand } from './run-command.ts';
import { NatsServerTooOldError, NatsServerUnusableError } from './server-errors.ts';

/** The oldest server that supports every setting Coxswain uses. Older servers silently ignore unknown settings. */
export const minimumServerVersion = '2.12.0';

/** Timeout of `nats-server --version`, in milliseconds: loading the binary from a cold disk may take long. */
const versionTimeoutMs = 20_000;

/**
 * Whether a server's version (`2.15.1`, `v2.15.1`, `2.16.0-dev`) is `minimum` or newer. A pre-release is older than its
 * release. An invalid version is not new enough.
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
 * Runs a binary to get its version, such as `2.15.1`.
 *
 * @throws NatsServerUnusableError if it does not complete within 20 s, fails, or is not a nats-server.
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
 * Runs a binary to get its version, and checks it against {@link minimumServerVersion}.
 *
 * @throws NatsServerUnusableError if it is not a nats-server that runs here.
 * @throws NatsServerTooOldError if it is older than the minimum.
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
