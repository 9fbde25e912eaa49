/** Sends one command to a session that a command line names, and tells what became of it. */
import {
  type CommandReceipt,
  newCommandId,
  printable,
  receiptToWire,
  type SendOptions,
  type SentCommand,
  type Session,
  type WaitStage,
} from '@coxswain/client';
import { type CallCancellation, CommandId } from '@coxswain/protocol';
import { type OpenBus, withBus } from '../instance/open-bus.ts';
import { pastedCommand } from '../instance/pasted-command.ts';
import { findSession } from '../instance/resolve-session.ts';
import { CliError, EXIT, type ExitCode } from '../line/cli-error.ts';
import type { Invocation } from '../line/command-spec.ts';
import { standardStreams } from '../terminal/streams.ts';
import { commandIdOf } from './start-body.ts';

/** A host takes a command up within milliseconds; a session that has to be read first takes longer. */
const ACCEPTED_WITHIN_MS = 15_000;
/** Delivery takes as long as the running turn does. */
const DELIVERED_WITHIN_MS = 24 * 60 * 60 * 1_000;

/** What a command line is told that names no call, where none is open. */
const NONE_OPEN: ReadonlySet<string> = new Set(['not_pending', 'not_found']);

/** What was sent, and where to, if not to the session that was named. */
export type SentSomewhere = SentCommand & {
  readonly to?: Session;
  /** How the cancelling of a call ended, where that was waited for. */
  readonly cancellation?: CallCancellation | undefined;
};
/** The sending itself. */
export type Send = (session: Session, options: SendOptions<WaitStage>, bus: OpenBus) => Promise<SentSomewhere>;

/**
 * Finds the session, sends, prints.
 * @param then follows the command to its outcome and tells that; not called where nothing runs the session.
 */
export function sendToSession(
  invocation: Invocation,
  send: Send,
  then?: (session: Session, sent: SentSomewhere) => Promise<ExitCode>,
): Promise<ExitCode> {
  const asked = invocation.flags.oneOf('wait', ['stored', 'accepted', 'delivered']) ?? 'accepted';
  // One id for every attempt: sending the same again changes nothing.
  const given = commandIdOf(invocation);
  const id = given ?? newCommandId();
  return withBus(invocation, false, async (bus) => {
    const session = await findSession(bus.client, invocation.args[0] as string);
    // Where nothing runs sessions, the command lies ready for whatever runs them next: no receipt will come today.
    const wait = bus.hosted ? asked : 'stored';
    const timeoutMs = wait === 'delivered' ? DELIVERED_WITHIN_MS : ACCEPTED_WITHIN_MS;
    const bounds = { timeoutMs, acceptedWithinMs: ACCEPTED_WITHIN_MS, signal: bus.gone };
    const sent: SentSomewhere = await send(session, { id, wait, ...bounds }, bus).catch((error) =>
      repetition(session, given, error),
    );
    const follows = then && bus.hosted ? then : null;
    // Of what is followed to its outcome that is told, and not first that somebody will see to it.
    if (!follows || invocation.flags.on('json')) tell(invocation, sent.to ?? session, sent, bus);
    const goOn = (command: string) => pastedCommand(command, bus, invocation.env);
    if (invocation.flags.on('wait')) requireStage(sent.receipt, asked, session, goOn);
    return follows ? follows(session, sent) : EXIT.ok;
  });
}

/** What was asked for by name and not reached is no success, though nothing is lost. */
function requireStage(
  receipt: CommandReceipt | undefined,
  asked: WaitStage,
  session: Session,
  pasted: (command: string) => string,
): void {
  const stored = receipt === undefined && asked !== 'stored';
  const kept = receipt?.pendingForNextRun === true && asked === 'delivered';
  if (!stored && !kept) return;
  const why = stored
    ? `it is stored, and no host runs this session now; continue with: ${pasted(`attach ${session.id}`)}`
    : `the run has ended, and the command is kept for the next run: ${pasted(`run "…" --session ${session.id}`)}`;
  throw new CliError(EXIT.error, 'stage_not_reached', `stage_not_reached: not ${asked}: ${why}`);
}

/**
 * A repetition that names no call finds none that waits any more; what became of the first one is its answer.
 * @throws the error itself where there was no first one.
 */
async function repetition(session: Session, commandId: string | undefined, error: unknown): Promise<SentCommand> {
  if (commandId === undefined || !(error instanceof CliError) || !NONE_OPEN.has(error.code)) throw error;
  const receipt = await session.receiptOf(commandId);
  if (receipt?.stage !== 'accepted') throw error;
  return { commandId: CommandId.parse(commandId), seq: 0, duplicate: true, receipt };
}

function tell({ flags, env }: Invocation, session: Session, sent: SentCommand, bus: OpenBus): void {
  const { commandId, seq, receipt } = sent;
  if (flags.on('json')) {
    const line = (receipt && receiptToWire(receipt)) ?? {
      ...{ type: 'receipt', session_id: session.id, command_id: commandId, stage: 'stored', seq },
      ...(sent.duplicate ? { message: 'repeated: nothing changed' } : {}),
    };
    standardStreams.out(`${JSON.stringify(line)}\n`);
    return;
  }
  const what = receipt === undefined ? 'stored' : receipt.stage;
  const where = receipt?.seam === undefined ? '' : ` at ${receipt.seam} of turn ${receipt.turn}`;
  const later = receipt?.pendingForNextRun ? '; the session has ended, so it waits for the next run' : '';
  const again = sent.duplicate ? ' (repeated: nothing changed)' : '';
  const says = receipt?.detail?.says;
  const rule = typeof says === 'string' ? `\nremembered as ${receipt?.commandId}: ${printable(says)}` : '';
  const attach = pastedCommand(`attach ${session.id}`, bus, env);
  const idle = bus.hosted ? '' : `; no host runs this session now; continue with: ${attach}`;
  standardStreams.out(`${session.id}: ${what}${where}${again}${later}${idle}${rule}\n`);
}

/** For commands that are not delivered anywhere: they are followed until they are accepted. */
export function acceptedAtMost({ wait, ...options }: SendOptions<WaitStage>): SendOptions {
  return { ...options, wait: wait === 'stored' ? 'stored' : 'accepted' };
}
