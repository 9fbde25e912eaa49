/** Stays with a session until its run ends or the person leaves: the common part of `run` and `attach`. */
import type { ReadStream } from 'node:tty';
import { type BusSession, printable, type Session } from '@coxswain/client';
import type { OpenApproval } from '@coxswain/client/transport';
import { approveCommand, leaveRunning, type OpenBus, pastedCommand } from '../instance/mod.ts';
import { EXIT, type ExitCode, type Invocation } from '../line/mod.ts';
import { stopSignal } from '../service/mod.ts';
import { steerFromFile } from '../steering-file/mod.ts';
import { chooseView, isInteractive } from '../terminal/mod.ts';
import { exitCodeOf } from './exit-code-of.ts';
import { type FollowEnd, followSession, type Participant } from './follow-session.ts';
import { unattendedParticipant } from './unattended-participant.ts';
import { untilProcessed } from './until-processed.ts';

/** The first record to show, and the end of a run that counts; see followSession. */
export interface JoinOptions {
  readonly from?: number | undefined;
  readonly after?: number | undefined;
  /** Whether to stay after the end of the run, as with `--follow`. */
  readonly stay?: boolean | undefined;
  /** The stop signal of the caller. It is released here. Default: a new one. */
  readonly stop?: ReturnType<typeof stopSignal> | undefined;
  /** Called with each shown record. After a move to another instance, it need not be shown again. */
  readonly onShown?: ((n: number) => void) | undefined;
}

/**
 * Shows the session and lets a person steer it. Without a person, `--on-ask` decides approvals.
 * @returns the exit code of the run's stop reason, `EXIT.approvalNeeded`, or `EXIT.detached`.
 */
export async function joinSession(
  { flags, env }: Invocation,
  bus: OpenBus,
  session: BusSession,
  options: JoinOptions = {},
): Promise<ExitCode> {
  const json = flags.on('json');
  const onAsk = flags.oneOf('on-ask', ['deny', 'wait']) ?? 'exit';
  const { view, live } = await chooseView(flags, env);
  const leaving = new AbortController();
  const stop = options.stop ?? stopSignal();
  void stop.promise.then(() => leaving.abort());
  const sends = new Set<Promise<unknown>>();
  let isByUser = false;
  // A person who can type decides approvals, unless `--on-ask` is given.
  const keyboard = isInteractive() && !flags.on('on-ask') ? live : null;
  const stay = keyboard !== null && (options.stay === true || flags.on('follow'));
  if (!json) view.notice(`session ${session.id}`);
  keyboard?.attend(process.stdin as ReadStream, {
    session,
    startsRuns: stay,
    leave: () => {
      isByUser = true;
      leaving.abort();
    },
  });
  const own = (task: Promise<unknown>) => {
    sends.add(task);
    void task.finally(() => sends.delete(task));
  };
  const over = new AbortController();
  const failures: Error[] = [];
  const fail = (error: Error) => {
    failures.push(error);
    over.abort();
  };
  const participant: Participant = keyboard ?? unattendedParticipant(onAsk, { view, own, fail, over: over.signal });
  const file = await steerFromFile({ flags, env }, bus.stateDir, session, (text) => view.notice(text));
  let end: FollowEnd;
  try {
    const signal = AbortSignal.any([leaving.signal, bus.gone, over.signal]);
    // Without a host until now, stored commands may decide approvals that the journals show as pending.
    const processed = bus.embedded ? (id: string) => untilProcessed(bus.client.session(id), signal) : undefined;
    await processed?.(session.id);
    end = await followSession({
      session,
      view,
      participant,
      ...options,
      stay,
      sessionOf: (id) => bus.client.session(id),
      untilProcessed: processed,
      signal,
    });
  } finally {
    over.abort();
    stop.release();
    await file.close();
    view.close();
    await live?.sent();
    await Promise.all(sends);
  }
  if (end.kind === 'left' && !leaving.signal.aborted) {
    bus.gone.throwIfAborted();
    const [failure] = failures;
    if (failure !== undefined) throw failure;
  }
  // A person who leaves between two runs gets the exit code of the newest run, which has ended.
  if (isByUser && stay && live?.stopReason) return exitCodeOf(live.stopReason);
  const pasted = (command: string) => pastedCommand(command, bus, env);
  return conclude(end, bus, session, { isByUser, json, pasted });
}

/** The commands to continue later: one per call that needs an approval, and one to attach again. */
function approvalHints(
  approvals: readonly OpenApproval[],
  sessionId: string,
  pasted: (command: string) => string,
): string[] {
  const [only, ...others] = approvals;
  if (only && others.length === 0) {
    const approve = `${pasted(`approve ${only.session.id}`)} && ${pasted(`attach ${sessionId}`)}`;
    return [`${printable(only.tool)} ${only.summary} needs an approval, and there is no terminal:`, `  ${approve}`];
  }
  return [
    `${approvals.length} calls need an approval, and there is no terminal:`,
    ...approvals.map(
      ({ session, callId, tool, summary }) =>
        `  ${pasted(approveCommand(session.id, callId))}   # ${printable(tool)} ${summary}`,
    ),
    `then: ${pasted(`attach ${sessionId}`)}`,
  ];
}

interface LeaveOptions {
  readonly isByUser: boolean;
  readonly json: boolean;
  /** Builds a command line that finds this bus from another shell. */
  readonly pasted: (command: string) => string;
}

async function conclude(
  end: FollowEnd,
  bus: OpenBus,
  session: Session,
  { isByUser, json, pasted }: LeaveOptions,
): Promise<ExitCode> {
  const say = (text: string) => process.stderr.write(`${text}\n`);
  switch (end.kind) {
    case 'ended':
      return exitCodeOf(end.result.stopReason);
    case 'approval_needed': {
      if (json) return EXIT.approvalNeeded;
      for (const line of approvalHints(end.approvals, session.id, pasted)) say(line);
      return EXIT.approvalNeeded;
    }
    case 'step_waits':
      if (json) return EXIT.approvalNeeded;
      say(`the step ${end.step} has failed; resume the session to retry it:`);
      say(`  ${pasted(`session resume ${end.session}`)} && ${pasted(`attach ${session.id}`)}`);
      return EXIT.approvalNeeded;
    case 'left':
      if (bus.embedded) say('leaving; waiting up to ten seconds for running calls');
      if (bus.embedded && isByUser) await leaveRunning(bus, say);
      say(
        bus.embedded && !isByUser
          ? `detached; the session is stored; continue with: ${pasted(`attach ${session.id}`)}`
          : `detached; the session continues: ${pasted(`attach ${session.id}`)}`,
      );
      return EXIT.detached;
  }
}
