/** Sends one command to the session of a command line, and reports the result. */
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
import { findSession, type OpenBus, pastedCommand, withBus } from '../instance/mod.ts';
import { CliError, EXIT, type ExitCode, type Invocation } from '../line/mod.ts';
import { standardStreams } from '../terminal/mod.ts';
import { commandIdOf } from './start-body.ts';

/**
 * The time limit of acceptance, in ms. A host processes a command within milliseconds; loading a session takes longer.
 */
const ACCEPT_TIMEOUT_MS = 15_000;
/** The time limit of a delivery, in ms. It takes as long as the running turn. */
const DELIVERY_TIMEOUT_MS = 24 * 60 * 60 * 1_000;

/** Error codes for a command line without a call id if no call is open. */
const NONE_OPEN: ReadonlySet<string> = new Set(['not_pending', 'not_found']);

/** The sent command, and its session if it is not the named one. */
export type SentResult = SentCommand & {
  readonly to?: Session;
  /** The outcome of cancelling a call, if it was awaited. */
  readonly cancellation?: CallCancellation | undefined;
};
/** Sends the command. */
export type Send = (session: Session, options: SendOptions<WaitStage>, bus: OpenBus) => Promise<SentResult>;

/**
 * Finds the session, sends the command and prints the result.
 * @param then waits for the outcome of the command and prints it. Not called if no host runs the session.
 * @throws CliError `stage_not_reached` if the stage of `--wait` was not reached.
 */
export function sendToSession(
  invocation: Invocation,
  send: Send,
  then?: (session: Session, sent: SentResult) => Promise<ExitCode>,
): Promise<ExitCode> {
  const asked = invocation.flags.oneOf('wait', ['stored', 'accepted', 'delivered']) ?? 'accepted';
  // All attempts use one id: repeating the command has no effect.
  const given = commandIdOf(invocation);
  const id = given ?? newCommandId();
  let mayBeSent = given !== undefined;
  return withBus(invocation, false, async (bus) => {
    const earlier = mayBeSent ? id : undefined;
    mayBeSent = true;
    const session = await findSession(bus.client, invocation.args[0] as string);
    // Without a host, the command is stored for the next one and no receipt arrives.
    const wait = bus.hosted ? asked : 'stored';
    const timeoutMs = wait === 'delivered' ? DELIVERY_TIMEOUT_MS : ACCEPT_TIMEOUT_MS;
    const bounds = { timeoutMs, acceptedWithinMs: ACCEPT_TIMEOUT_MS, signal: bus.gone };
    const sent: SentResult = await send(session, { id, wait, ...bounds }, bus).catch((error) =>
      repetition(session, earlier, error),
    );
    const follows = then && bus.hosted ? then : null;
    // If the outcome is awaited, text output has only the outcome. JSON output also has the receipt.
    if (!follows || invocation.flags.on('json')) printSent(invocation, sent.to ?? session, sent, bus);
    const goOn = (command: string) => pastedCommand(command, bus, invocation.env);
    if (invocation.flags.on('wait')) requireStage(sent.receipt, asked, session, goOn);
    return follows ? follows(session, sent) : EXIT.ok;
  });
}

/** A stage that `--wait` requested and that was not reached is a failure, although the command is stored. */
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
 * A repeated command without a call id finds no pending call, and so may one that is sent again after the bus was lost. The
 * receipt of the first one is the answer.
 * @throws the given error if there was no first one.
 */
async function repetition(session: Session, commandId: string | undefined, error: unknown): Promise<SentCommand> {
  if (commandId === undefined || !(error instanceof CliError) || !NONE_OPEN.has(error.code)) throw error;
  const receipt = await session.receiptOf(commandId);
  if (receipt?.stage !== 'accepted') throw error;
  return { commandId: CommandId.parse(commandId), seq: 0, duplicate: true, receipt };
}

function printSent({ flags, env }: Invocation, session: Session, sent: SentCommand, bus: OpenBus): void {
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

/** For commands without a delivery: they wait at most for acceptance. */
export function acceptedAtMost({ wait, ...options }: SendOptions<WaitStage>): SendOptions {
  return { ...options, wait: wait === 'stored' ? 'stored' : 'accepted' };
}
