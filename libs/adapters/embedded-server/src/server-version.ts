import { minimumServerVersion, NatsServerTooOldError, serverVersionAtLeast } from '@coxswain/ports/discovery';
import { cutText } from '@coxswain/protocol';
import { CommandFailedError, runCommand } from './find/run-command.ts';
import { NatsServerUnusableError } from './server-errors.ts';

/** Timeout of `nats-server --version`, in milliseconds: loading the binary from a cold disk may take long. */
const versionTimeoutMs = 20_000;

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
  const version = /^nats-server:? v?(\d+\.\d+\.\d+(?:-\S+)?)(?=\s|$)/m.exec(output)?.[1];
  if (version === undefined) {
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
