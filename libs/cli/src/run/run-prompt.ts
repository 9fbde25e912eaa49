/** Runs one prompt, from the command line to the end of its run. */
import { CommandRejectedError, newCommandId, newSessionId, ReceiptTimeoutError, type Session } from '@coxswain/client';
import { callerFolder } from '../folders/mod.ts';
import { findSession, leaveRunning, type OpenBus, pastedCommand, withBus } from '../instance/mod.ts';
import { CliError, EXIT, type ExitCode, type Invocation, usageError } from '../line/mod.ts';
import { stopSignal } from '../service/mod.ts';
import { namedSteeringFile } from '../steering-file/mod.ts';
import { standardStreams } from '../terminal/mod.ts';
import { joinSession } from './join-session.ts';
import { baseUrlOf, expectRoot, modelOf, sessionIdOf, startBody } from './start-body.ts';

const ACCEPT_TIMEOUT_MS = 20_000;
const SENDING = { wait: 'accepted', timeoutMs: ACCEPT_TIMEOUT_MS } as const;

/** Flags that set up a session, which a later prompt cannot change. */
const ONLY_AT_THE_START = [
  ...['persona', 'crew', 'id', 'root', 'mcp', 'allow', 'ask', 'deny'],
  ...['output-schema', 'max-turns', 'max-tokens', 'max-usd', 'max-time'],
];

/**
 * Starts a session with the prompt, or continues the one of `--session`, and joins it.
 * @param stay whether to stay for the next prompt after the end of the run.
 * @returns the exit code of the run's stop reason, or 0 with `--detach`.
 */
export async function runPrompt(invocation: Invocation, prompt: string, stay = false): Promise<ExitCode> {
  const { flags } = invocation;
  const send = await prepare(invocation, prompt);
  flags.oneOf('on-ask', ['deny', 'wait']);
  if (namedSteeringFile(invocation) && flags.on('steering-file') && flags.on('detach')) {
    throw usageError('--steering-file and --detach exclude each other; cox attach --steering-file reads the file');
  }
  let started: { readonly id: string; readonly n: number | undefined } | null = null;
  let shown = 0;
  return withBus(invocation, true, async (bus) => {
    const pasted = (command: string) => pastedCommand(command, bus, invocation.env);
    // From here on a signal stops the session host of this process in order.
    const stop = stopSignal();
    try {
      if (started === null) {
        const { session, sent } = await accepted(send(bus, AbortSignal.any([bus.gone, stop.signal])), pasted);
        started = { id: session.id, n: sent.receipt?.n };
      }
      const session = bus.client.session(started.id);
      if (flags.on('detach')) {
        stop.release();
        return await detach(invocation, bus, session);
      }
      const from = Math.max(shown + 1, started.n ?? 1);
      const onShown = (n: number) => (shown = n);
      return await joinSession(invocation, bus, session, { from, after: started.n, stay, stop, onShown });
    } catch (error) {
      if (started !== null || !stop.signal.aborted) throw error;
      process.stderr.write(
        `stopped before a session host accepted the prompt; it may be stored: see ${pasted('session list')}\n`,
      );
      return EXIT.detached;
    } finally {
      stop.release();
    }
  });
}

type SentPrompt = Promise<{
  readonly session: Session;
  readonly sent: { readonly receipt?: { readonly n?: number | undefined } | undefined };
}>;

/** Checks the whole command line before anything is started. */
async function prepare(
  invocation: Invocation,
  prompt: string,
): Promise<(bus: OpenBus, signal: AbortSignal) => SentPrompt> {
  const { flags } = invocation;
  const goOn = flags.text('session');
  // All attempts use one id: repeating the command has no effect.
  const id = newCommandId();
  if (goOn === undefined) {
    const body = await startBody(invocation, prompt);
    const sessionId = sessionIdOf(invocation) ?? newSessionId();
    return async (bus, signal) => {
      if (bus.embedded) expectRoot(invocation, body);
      const session = bus.client.session(sessionId);
      const sent = await session.wire.send('start', body, { id, ...SENDING, signal });
      return { session, sent };
    };
  }
  const misplaced = ONLY_AT_THE_START.find((name) => flags.on(name));
  if (misplaced !== undefined) {
    throw usageError(
      `--${misplaced} is an option of new sessions; --session continues an existing session with its own settings`,
    );
  }
  // COX_MODEL applies to new sessions. This session keeps its model unless the command line names another one.
  const model = modelOf(flags.text('model'), callerFolder(invocation.env));
  const baseUrl = baseUrlOf(flags.text('base-url'));
  const mode = flags.text('persona-mode');
  return async (bus, signal) => {
    const session = await findSession(bus.client, goOn);
    const sent = await session.prompt(prompt, { model, baseUrl, mode, id, ...SENDING, signal });
    return { session, sent };
  };
}

async function accepted(sending: SentPrompt, pasted: (command: string) => string): SentPrompt {
  try {
    return await sending;
  } catch (error) {
    if (error instanceof CommandRejectedError && error.code === 'session_exists') {
      const goOn = pasted('run "…" --session ID');
      throw new CliError(EXIT.error, error.code, `${error.code}: ${error.message}; with cox: ${goOn}`);
    }
    if (!(error instanceof ReceiptTimeoutError)) throw error;
    throw new CliError(
      EXIT.error,
      'no_host',
      'no_host: no session host on this bus accepted the prompt; run one with cox up --nats URL',
    );
  }
}

async function detach({ flags }: Invocation, bus: OpenBus, session: Session): Promise<ExitCode> {
  if (bus.embedded) await leaveRunning(bus, (text) => process.stderr.write(`${text}\n`));
  standardStreams.out(
    flags.on('json') ? `${JSON.stringify({ type: 'detached', session_id: session.id })}\n` : `${session.id}\n`,
  );
  return EXIT.ok;
}
