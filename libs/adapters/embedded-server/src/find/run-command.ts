import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { systemTrouble } from '@coxswain/ports/discovery';
import { cutTextToEnd } from '@coxswain/protocol';

/** Timeout and environment of a program. */
export interface RunCommandOptions {
  /** After this many milliseconds the program is killed and the call fails. */
  readonly timeoutMs: number;
  readonly env?: NodeJS.ProcessEnv | undefined;
  readonly cwd?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Called with each line that the program writes to file descriptor 3, which is a pipe if this is set. */
  readonly onStatusLine?: ((line: string) => void) | undefined;
}

/** A program could not be started, exceeded its timeout, was killed, or ended with another code than 0. */
export class CommandFailedError extends Error {
  readonly code = 'command_failed';
  /** The message without the name of the program. */
  readonly reason: string;

  constructor(command: string, reason: string, options?: ErrorOptions) {
    super(`${command}: ${reason}`, options);
    this.name = 'CommandFailedError';
    this.reason = reason;
  }
}

/** Maximum kept characters per output stream. Longer output is cut at the front, because errors are at the end. */
const maxOutputChars = 256 * 1024;

/**
 * Runs a program without a shell, and waits for its end.
 *
 * @returns its standard output.
 * @throws CommandFailedError if it cannot be started, exceeds its timeout, is killed, or ends with another code than 0.
 *   After its end, the message has the last lines of its standard error, or of its output.
 */
export function runCommand(file: string, args: readonly string[], options: RunCommandOptions): Promise<string> {
  const { timeoutMs, env, cwd, signal, onStatusLine } = options;
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, {
      stdio: ['ignore', 'pipe', 'pipe', ...(onStatusLine ? (['pipe'] as const) : [])],
      ...(env === undefined ? {} : { env }),
      ...(cwd === undefined ? {} : { cwd }),
      ...(signal === undefined ? {} : { signal }),
      killSignal: 'SIGKILL',
      windowsHide: true,
    });
    let stdout = '';
    let stderr = '';
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      stdout = cutTextToEnd(stdout + text, maxOutputChars);
    });
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      stderr = cutTextToEnd(stderr + text, maxOutputChars);
    });
    if (onStatusLine) createInterface({ input: child.stdio[3] as Readable }).on('line', onStatusLine);

    const fail = (reason: string, cause?: unknown) => {
      clearTimeout(timer);
      // Do not wait for 'close': a grandchild that inherited the pipes could hold them open beyond the timeout.
      for (const stream of child.stdio) stream?.destroy();
      reject(new CommandFailedError(file, reason, { cause }));
    };
    const timer = setTimeout(() => {
      child.kill('SIGKILL');
      fail(`did not end within ${timeoutMs} ms`);
    }, timeoutMs);

    child.once('error', (error) => fail(systemTrouble(error), error));
    child.once('close', (code, killedBy) => {
      clearTimeout(timer);
      if (code === 0) return resolve(stdout);
      const how = code === null ? `was ended by ${killedBy}` : `ended with code ${code}`;
      fail(`${how}${lastLines(stderr || stdout)}`);
    });
  });
}

function lastLines(text: string): string {
  const lines = text.trim().split('\n').slice(-6);
  return lines.join('') === '' ? '' : `: ${lines.join(' | ')}`;
}
