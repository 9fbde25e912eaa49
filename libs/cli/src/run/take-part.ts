/** Stays with a session until its run ends or somebody leaves: the common part of `run` and `attach`. */
import type { ReadStream } from 'node:tty';
import type { BusSession, Session } from '@coxswain/client';
import { leaveRunning } from '../instance/leave-running.ts';
import type { OpenBus } from '../instance/open-bus.ts';
import { pastedCommand } from '../instance/pasted-command.ts';
import { stopSignal } from '../instance/stop-signal.ts';
import { EXIT, type ExitCode } from '../line/cli-error.ts';
import type { Invocation } from '../line/command-spec.ts';
import { steerFromFile } from '../steering-file/steer-from-file.ts';
import { chooseView, isInteractive } from '../terminal/streams.ts';
import { nobody } from './answer-nobody.ts';
import { exitCodeOf } from './exit-code-of.ts';
import { type FollowEnd, followSession, type Participant } from './follow-session.ts';
import type { OpenApproval } from './open-approvals.ts';
import { untilTaken } from './until-taken.ts';

/** From where a session is shown, and which end counts; see followSession. */
export interface Part {
  readonly from?: number | undefined;
  readonly after?: number | undefined;
  /** Stay after the end of the run, as `--follow` does. */
  readonly stay?: boolean | undefined;
  /** A record was shown: it need not be shown again where the session is taken up on another instance. */
  readonly onShown?: ((n: number) => void) | undefined;
}

/** Shows the session, lets a person steer it, answers for nobody. */
export async function takePart(
  { flags, env }: Invocation,
  bus: OpenBus,
  session: BusSession,
  part: Part = {},
): Promise<ExitCode> {
  const json = flags.on('json');
  const onAsk = flags.oneOf('on-ask', ['deny', 'wait']) ?? 'exit';
  const { view, live } = await chooseView(flags, env);
  const leaving = new AbortController();
  const told = stopSignal();
  void told.promise.then(() => leaving.abort());
  const sends = new Set<Promise<unknown>>();
  let byHand = false;
  // A person who can type answers approvals; `--on-ask` answers them instead.
  const keyboard = isInteractive() && !flags.on('on-ask') ? live : null;
  const stay = keyboard !== null && (part.stay === true || flags.on('follow'));
  if (!json) view.notice(`session ${session.id}`);
  keyboard?.attend(process.stdin as ReadStream, {
    session,
    startsRuns: stay,
    leave: () => {
      byHand = true;
      leaving.abort();
    },
  });
  const own = (task: Promise<unknown>) => {
    sends.add(task);
    void task.finally(() => sends.delete(task));
  };
  const participant: Participant = keyboard ?? nobody(view, onAsk, own);
  const file = await steerFromFile({ flags, env }, bus.stateDir, session, (text) => view.notice(text));
  let end: FollowEnd;
  try {
    const signal = AbortSignal.any([leaving.signal, bus.gone]);
    // No host ran these sessions until now: stored commands may decide approvals that their journals show as open.
    const taken = bus.embedded ? (id: string) => untilTaken(bus.client.session(id), signal) : undefined;
    await taken?.(session.id);
    end = await followSession({
      session,
      view,
      participant,
      ...part,
      stay,
      sessionOf: (id) => bus.client.session(id),
      untilTaken: taken,
      signal,
    });
  } finally {
    told.release();
    await file.close();
    view.close();
    await live?.sent();
    await Promise.all(sends);
  }
  if (end.kind === 'left' && !leaving.signal.aborted) bus.gone.throwIfAborted();
  // A person who leaves between two runs leaves nothing behind: the newest run has ended.
  if (byHand && stay && live?.stopReason) return exitCodeOf(live.stopReason);
  const pasted = (command: string) => pastedCommand(command, bus, env);
  return conclude(end, bus, session, { byHand, json, pasted });
}

/** A person who comes later finds what to type: a line for each call, and one to go on with. */
function whatIsNeeded(
  approvals: readonly OpenApproval[],
  sessionId: string,
  pasted: (command: string) => string,
): string[] {
  const [only, ...others] = approvals;
  if (only && others.length === 0) {
    const approve = `${pasted(`approve ${only.session.id}`)} && ${pasted(`attach ${sessionId}`)}`;
    return [`${only.tool} ${only.summary} needs an approval, and there is no terminal:`, `  ${approve}`];
  }
  return [
    `${approvals.length} calls need an approval, and there is no terminal:`,
    ...approvals.map(
      ({ session, callId, tool, summary }) => `  ${pasted(`approve ${session.id} ${callId}`)}   # ${tool} ${summary}`,
    ),
    `then: ${pasted(`attach ${sessionId}`)}`,
  ];
}

interface Leaving {
  readonly byHand: boolean;
  readonly json: boolean;
  /** A command line that finds this bus from another shell. */
  readonly pasted: (command: string) => string;
}

async function conclude(
  end: FollowEnd,
  bus: OpenBus,
  session: Session,
  { byHand, json, pasted }: Leaving,
): Promise<ExitCode> {
  const say = (text: string) => process.stderr.write(`${text}\n`);
  switch (end.kind) {
    case 'ended':
      return exitCodeOf(end.result.stopReason);
    case 'approval_needed': {
      if (json) return EXIT.approvalNeeded;
      for (const line of whatIsNeeded(end.approvals, session.id, pasted)) say(line);
      return EXIT.approvalNeeded;
    }
    case 'step_waits':
      if (json) return EXIT.approvalNeeded;
      say(`the step ${end.step} has failed; resume the session to retry it:`);
      say(`  ${pasted(`session resume ${end.session}`)} && ${pasted(`attach ${session.id}`)}`);
      return EXIT.approvalNeeded;
    case 'left':
      if (bus.embedded) say('leaving; waiting up to ten seconds for running calls');
      if (bus.embedded && byHand) await leaveRunning(bus, say);
      say(
        bus.embedded && !byHand
          ? `detached; the session is stored; continue with: ${pasted(`attach ${session.id}`)}`
          : `detached; the session continues: ${pasted(`attach ${session.id}`)}`,
      );
      return EXIT.detached;
  }
}
