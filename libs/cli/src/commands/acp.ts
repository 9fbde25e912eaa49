/** `cox acp`. */
import { join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import { MessageTooLargeError } from '@agentclientprotocol/sdk';
import { CurrentBus } from '../acp/current-bus.ts';
import { serveAcp } from '../acp/serve-acp.ts';
import { readChoices, sendStart } from '../acp/start-session.ts';
import { UnsentSettings } from '../acp/unsent-settings.ts';
import { leaveRunning } from '../instance/leave-running.ts';
import { type OpenBus, withBus } from '../instance/open-bus.ts';
import { stateDirOf } from '../instance/state-dir.ts';
import { stopSignal } from '../instance/stop-signal.ts';
import { EXIT } from '../line/cli-error.ts';
import type { CommandRun } from '../line/command-spec.ts';

/** Serves an editor on standard input and output until it disconnects. Its sessions continue. Exits 0. */
export const run: CommandRun = async (invocation) => {
  const offered = await readChoices(invocation);
  // Standard output carries only the protocol: console output of libraries goes to standard error.
  for (const method of ['log', 'info', 'debug', 'warn'] as const) console[method] = console.error;
  const bus = new CurrentBus();
  const stop = stopSignal();
  const { agent, connection } = serveAcp(
    {
      bus,
      offered,
      unsent: new UnsentSettings(join(stateDirOf(invocation.flags, invocation.env), 'editor-sessions')),
      start: (session, prompt, commandId, started) => sendStart(invocation, session, prompt, commandId, started),
    },
    {
      input: Readable.toWeb(process.stdin) as ReadableStream<Uint8Array>,
      output: Writable.toWeb(process.stdout) as WritableStream<Uint8Array>,
    },
  );
  // A write error means that the editor has disconnected. It closes the connection and does not end the process
  // abruptly.
  for (const stream of [process.stdout, process.stderr])
    stream.removeAllListeners('error').on('error', () => connection.close());
  const left = Promise.race([connection.closed.catch(() => undefined), stop.promise]);
  let isLeft = false;
  void left.then(() => {
    isLeft = true;
  });
  const say = (text: string) => process.stderr.write(`${text}\n`);
  await withBus(invocation, true, async (open) => {
    bus.set(open);
    try {
      await Promise.race([left, goneOf(open)]);
    } finally {
      bus.set(null);
    }
    if (!isLeft) open.gone.throwIfAborted();
    const isBusy = agent.isBusy;
    await agent.close();
    if (open.embedded && isBusy) await leaveRunning(open, say);
  });
  stop.release();
  const { reason } = connection.signal;
  if (reason instanceof MessageTooLargeError) say(`cox acp: ${reason.message}`);
  connection.close();
  return EXIT.ok;
};

function goneOf({ gone }: OpenBus): Promise<void> {
  if (gone.aborted) return Promise.resolve();
  return new Promise((resolve) => gone.addEventListener('abort', () => resolve(), { once: true }));
}
