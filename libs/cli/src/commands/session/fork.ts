/** `cox session fork`. */

import {
  hasEnded,
  newCommandId,
  newSessionId,
  type SendOptions,
  type Session,
  SessionNotFoundError,
} from '@coxswain/client';
import type { ForkChangesInput, JournalRecord } from '@coxswain/protocol';
import { findSession, leaveRunning, withBus } from '../../instance/mod.ts';
import { CliError, type CommandRun, EXIT, type ExitCode, type Invocation } from '../../line/mod.ts';
import { forkChanges, joinSession, sessionIdOf } from '../../run/mod.ts';
import { namedSteeringFile } from '../../steering-file/mod.ts';
import { counted, standardStreams } from '../../terminal/mod.ts';

/** The wait for the fork's first record, in ms. Copying a long session takes time. */
const ACCEPT_TIMEOUT_MS = 60_000;

/** Starts a session with the history of another one, and joins it. */
export const run: CommandRun = async (invocation) => {
  const { flags } = invocation;
  const at = flags.whole('at', { min: 1, max: Number.MAX_SAFE_INTEGER });
  const changes = await forkChanges(invocation);
  const sessionId = sessionIdOf(invocation) ?? newSessionId();
  flags.oneOf('on-ask', ['deny', 'wait']);
  namedSteeringFile(invocation);
  // All attempts use one id: repeating the command has no effect.
  const id = newCommandId();
  let forkedAt: number | null = null;
  let shown = 0;
  return withBus(invocation, true, async (bus) => {
    const session = bus.client.session(sessionId);
    if (forkedAt === null) {
      const origin = await findSession(bus.client, invocation.args[0] as string);
      const sending = { id, wait: 'accepted', timeoutMs: ACCEPT_TIMEOUT_MS, signal: bus.gone } as const;
      forkedAt = await startFork(origin, session, { at, changes, ...sending });
    }
    const n = forkedAt;
    const copy = await untilCopied(session, n, changes, bus.gone);
    if (flags.on('detach')) {
      if (bus.embedded) await leaveRunning(bus, (text) => process.stderr.write(`${text}\n`));
      return printForked(invocation, session, n);
    }
    if (copy.hasEnded) return printForked(invocation, session, n);
    // Of the copied records, a reader does not know the changed one.
    const from = Math.max(shown + 1, copy.isChanged ? n : n + 1);
    return joinSession(invocation, bus, session, { from, after: n + 1, onShown: (record) => (shown = record) });
  });
};

/**
 * Sends the start of a fork. The changes come from files, in wire form. @returns the number of the record that the fork
 * starts from.
 */
async function startFork(
  origin: Session,
  fork: Session,
  {
    at,
    changes,
    ...sending
  }: SendOptions & { readonly at: number | undefined; readonly changes: ForkChangesInput | undefined },
): Promise<number> {
  const n = at ?? (await origin.lastNumber());
  if (n === 0) throw new SessionNotFoundError(origin.id);
  await fork.wire.send('start', { fork: { session: origin.id, n, ...(changes && { changes }) } }, sending);
  return n;
}

/** The copied records: whether their last run has ended, and whether the last record has a change of the fork. */
interface Copy {
  readonly hasEnded: boolean;
  readonly isChanged: boolean;
}

/** Waits for the record that takes over the copy. Before it, the state of the fork is unknown. */
async function untilCopied(
  session: Session,
  n: number,
  changes: ForkChangesInput | undefined,
  signal: AbortSignal,
): Promise<Copy> {
  let isOver = false;
  let isChanged = false;
  for await (const record of session.records({ signal })) {
    const { events, state, n: at, input } = record;
    isOver = hasEnded(state);
    if (at === n) isChanged = isChangedBy(changes, record);
    const failed = events.find((event) => event.type === 'copy_failed');
    const isTakeover = input.type === 'owned' && input.after_copy?.session === session.id;
    if (isTakeover && failed?.type === 'copy_failed') {
      const { code, message } = failed.error;
      throw new CliError(
        EXIT.error,
        'fork_origin_gone',
        `${code}: ${session.id} has ${counted(failed.copied, 'record')} only: ${message}`,
      );
    }
    if (isTakeover && at > n) break;
  }
  signal.throwIfAborted();
  return { hasEnded: isOver, isChanged };
}

/** Whether the last copied record has a change of the fork. The prompt is in it, or starts a run after it. */
function isChangedBy(changes: ForkChangesInput | undefined, { input }: JournalRecord): boolean {
  if (changes?.verdicts !== undefined || changes?.result !== undefined) return true;
  if (changes?.prompt === undefined || input.type !== 'command') return false;
  return input.body.prompt === changes.prompt || input.body.body === changes.prompt;
}

function printForked({ flags, args }: Invocation, session: Session, n: number): ExitCode {
  const line = { type: 'forked', session_id: session.id, origin: args[0], n };
  standardStreams.out(flags.on('json') ? `${JSON.stringify(line)}\n` : `${session.id}\n`);
  return EXIT.ok;
}
