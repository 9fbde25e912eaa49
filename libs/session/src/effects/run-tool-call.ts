/**
 * Runs the tool calls of a session. A call that arrives here has passed the hooks, the permission gate and any
 * approval: the turn machine requests the call only then (`callEffects` in libs/turn, calls/batch.ts). The call runs
 * with exactly the arguments that passed these checks. Whether a call that may have run is sent again: {@link
 * sendCall}. If the session's tools cannot be reopened, nothing is sent: `SessionWorker.#callTool` (session-worker.ts)
 * returns {@link INTERRUPTED}, without a probe, also for an idempotent call. What the outcome of a call causes:
 * `decideCall` (calls/outcome.ts in libs/turn). If the outcome is unknown, a person may have to decide:
 * `mustAskAboutUnknown` (approvals/approvals.ts in libs/turn).
 */
import type { Blobs, Clock, ToolCall, ToolOutcome, Toolset } from '@coxswain/ports';
import {
  BOUNDS,
  type CallAccepted,
  type CallOutcome,
  EditedPath,
  SESSION_LEFT,
  type ToolDefinition,
  type ToolResult,
} from '@coxswain/protocol';
import { elapsedMs } from '../trace/measure-work.ts';
import { boundResult } from './bound-result.ts';

/** One admitted call, and what its host knows of it. */
export interface Dispatch {
  readonly effectId: string;
  readonly call: ToolCall;
  readonly tool: ToolDefinition | undefined;
  /** Whether the model has a tool that reads the rest of a cut result. */
  readonly hasReadOnTool: boolean;
  /** An earlier owner of the session may have sent the call to its tool already. */
  readonly mayHaveRun: boolean;
}

/**
 * Runs one call, or finds out its outcome where an earlier owner may have sent it. An idempotent call may be sent again.
 * Contract: never rejects, because every end of a call is an outcome. Bounds: {@link SENDINGS_MAX}, 15 s of attempts while no
 * instance accepts a call that may have run, and one hour of pauses in each search for an outcome. The answer of a tool has
 * no time limit here: where a tool ignores `signal`, `EffectTable` (session-work.ts) ends the call after the grace period of
 * the abort order.
 */
export async function runToolCall(
  toolset: Toolset,
  blobs: Blobs,
  clock: Clock,
  dispatch: Dispatch,
  signal: AbortSignal,
): Promise<CallOutcome | CallAccepted> {
  const { call, effectId } = dispatch;
  const startedMs = clock.monotonicMs();
  const ran = await sendCall(toolset, clock, dispatch, signal);
  if (ran.status === 'accepted') {
    // The worker may have started for an earlier owner, and reports the outcome with that epoch: record the older one.
    const epoch = Math.min(ran.epoch ?? call.epoch, call.epoch);
    return { type: 'call_accepted', effect_id: effectId, call_id: call.callId, epoch };
  }
  const outcome = ran.status === 'interrupted' ? ran : await boundResult(blobs, ran as ToolOutcome, dispatch);
  const status =
    outcome.status === 'ok' || outcome.status === 'cancelled' || outcome.status === 'interrupted'
      ? outcome.status
      : 'error';
  const edited = editedPaths(ran.edited);
  return {
    type: 'call_outcome',
    effect_id: effectId,
    call_id: call.callId,
    status,
    result: outcome.result,
    ...(ran.park ? { park: ran.park } : {}),
    ...(edited.length > 0 ? { edited } : {}),
    duration_ms: elapsedMs(clock, startedMs),
  };
}

// Invalid paths of edited files, and paths beyond the bound, are dropped: they must not make the outcome invalid.
function editedPaths(said: readonly string[] = []): string[] {
  const paths = said.filter((path) => EditedPath.safeParse(path).success);
  return [...new Set(paths)].sort().slice(0, BOUNDS.editedPathsPerCallMax);
}

type Ended = Omit<ToolOutcome, 'status'> & { readonly status: ToolOutcome['status'] | 'interrupted' };

/** The pause between two probes of a call, and between two sendings of a call that no instance accepts. */
const PROBE_EVERY_MS = 250;
/** The sum of the pauses of one search for an outcome. The time of the probes and of the worker's answer adds to it. */
const PROBING_MAX_MS = 60 * 60 * 1_000;
const PROBES_MAX = PROBING_MAX_MS / PROBE_EVERY_MS;
/**
 * The budget of one owner for a call whose workers die one after another. A sending costs one, and so does each move of it
 * to another instance by the toolset. A sending that begins with k left may be moved k times. So one owner starts a call
 * at most `SENDINGS_MAX` + 1 times. With a budget of 3:
 * - One sending with 3 moves is 4 starts, and costs 4.
 * - A sending without a move costs 1. The next one may be moved 2 times. Together they are 1 + 3 = 4 starts.
 * - A sending with 2 moves is 3 starts, and costs 3: nothing is left.
 */
const SENDINGS_MAX = 3;
/** How long an idempotent call that may have run is sent again while no instance accepts it: the former instance may restart. */
const RESEND_WITHIN_MS = 15_000;

/**
 * Sends a call to its tool, or finds out the outcome of an earlier sending. A call that may have run, with an unknown
 * outcome, is sent again only if its tool is idempotent, the signal has not aborted, and this owner has sendings left
 * ({@link SENDINGS_MAX}). Otherwise it ends as `interrupted`. It ends as `unavailable` if no instance accepts it again
 * for {@link RESEND_WITHIN_MS}, or at once if another host owns the session. {@link runToolCall} reports `unavailable` as
 * `error`, also for a call that may have run: no person is asked about it.
 */
async function sendCall(toolset: Toolset, clock: Clock, dispatch: Dispatch, signal: AbortSignal): Promise<Ended> {
  const { tool } = dispatch;
  // The tools of a session can change under a call only in a fork.
  if (!tool && dispatch.mayHaveRun) return INTERRUPTED;
  if (!tool) return errorOutcome('unavailable', `There is no tool ${dispatch.call.tool}.`, 'tool_unavailable');
  /** How often tools got the call, as far as known. All sendings of earlier owners count as one. */
  let timesSent = Number(dispatch.mayHaveRun);
  let unservedSinceMs: number | null = null;
  let why: string | null = null;
  for (let sendingsUsed = 0; sendingsUsed < SENDINGS_MAX; sendingsUsed++) {
    const mayHaveRun = timesSent > 0;
    const call = { ...dispatch.call, movesMax: SENDINGS_MAX - sendingsUsed };
    const known = mayHaveRun ? await findEarlierOutcome(toolset, clock, { ...dispatch, call }, signal) : null;
    if (known && known.status !== 'lost') return checkedOutcome(known, tool, timesSent, signal);
    if (mayHaveRun && !known && (signal.aborted || !tool.traits.idempotent)) break;
    if (!known && signal.aborted)
      return errorOutcome('cancelled', 'Cancelled before the tool call was dispatched.', 'tool_interrupted');
    const beforeMs = clock.monotonicMs();
    // `known` is `lost` only if the toolset has resent the call: this pass sends nothing. It counts as one sending, and
    // adds the moves.
    const outcome = known ?? (await toolset.call(call, signal));
    if (mayHaveRun && isUnserved(outcome)) {
      unservedSinceMs ??= beforeMs;
      if (clock.monotonicMs() - unservedSinceMs >= RESEND_WITHIN_MS) return noLongerServed(outcome);
      await clock.sleep(PROBE_EVERY_MS, signal);
      // No instance accepted this sending: it does not count.
      sendingsUsed--;
    } else {
      // The signal stopped this sending. An earlier sending may have taken effect.
      if (!known && mayHaveRun && outcome.status === 'cancelled' && signal.aborted) break;
      if (!known) timesSent++;
      if (outcome.status !== 'lost') return checkedOutcome(outcome, tool, timesSent, signal);
      const moves = outcome.moves ?? 0;
      unservedSinceMs = null;
      why = reasonOfToolset(outcome);
      sendingsUsed += moves;
      timesSent += moves;
    }
  }
  return unknownOutcome(why ?? HOST_ENDED, timesSent);
}

/** The toolset's reason for a call that is lost, or that no instance accepts. */
function reasonOfToolset({ result }: ToolOutcome): string {
  const [said] = result.content;
  return said?.type === 'text' && said.text !== '' ? said.text : 'the process that ran this call ended';
}

/** The outcome of an idempotent call that a process may have run, and that no process accepts any longer. */
function noLongerServed(outcome: ToolOutcome): Ended {
  const text = `${reasonOfToolset(outcome)}. It was sent before, and may have taken effect`;
  return errorOutcome('unavailable', text, 'tool_unavailable');
}

// A stale epoch means that another host owns the session: waiting does not help.
function isUnserved({ status, result }: ToolOutcome): boolean {
  return status === 'unavailable' && result.detail?.code !== 'stale_epoch';
}

/**
 * Finds the outcome of a call that an instance may have run.
 * @returns the known outcome; `lost` only if the toolset has already resent the call to another instance. Null if no
 *   instance knows the call, if the search has ended without an outcome (bound or abort), or if the call is idempotent
 *   and the instance that may have it is silent.
 */
async function findEarlierOutcome(
  toolset: Toolset,
  clock: Clock,
  { call, tool }: Dispatch,
  signal: AbortSignal,
): Promise<ToolOutcome | null> {
  // One probe also follows an abort: `attach` tells the worker, which returns the outcome. A runner that left does not probe.
  for (let probes = 0; probes < PROBES_MAX && (probes === 0 || !signal.aborted); probes++) {
    if (signal.reason === SESSION_LEFT) return null;
    const probe = await toolset.probe(call.idempotencyKey, call.tool, call.epoch);
    if (probe.state === 'done') return probe.outcome;
    if (probe.state === 'unknown') return null;
    // A silent instance may have the call. An idempotent call may run twice, so it does not wait for that instance.
    if (probe.state === 'silent' && tool?.traits.idempotent) return null;
    const outcome = probe.state === 'running' ? await probe.attach(call, signal) : null;
    if (outcome && (outcome.status !== 'lost' || outcome.moves)) return outcome;
    await clock.sleep(PROBE_EVERY_MS, signal);
  }
  return null;
}

function checkedOutcome(
  outcome: ToolOutcome,
  { name, traits }: ToolDefinition,
  timesSent: number,
  signal: AbortSignal,
): Ended {
  // Every cancel of a call aborts the signal. If the tool stopped without it, the outcome is unknown.
  if (outcome.status === 'cancelled' && !signal.aborted)
    return unknownOutcome(`${name} stopped the call by itself`, timesSent);
  if (outcome.status !== 'accepted' || traits.long_running) return outcome;
  return errorOutcome('error', `${name} deferred its result, but it is not declared long_running.`, 'tool_failed');
}

/** The status and the result of an outcome: one text, marked as an error. */
export function errorOutcome<S extends Ended['status']>(
  status: S,
  text: string,
  code: string,
): { status: S; result: ToolResult } {
  return { status, result: { content: [{ type: 'text', text }], is_error: true, detail: { code } } };
}

function unknownOutcome(why: string, timesSent: number) {
  const runs = timesSent > 1 ? 'It may have run several times, and is not run again.' : 'It was not re-run.';
  return errorOutcome('interrupted', `The outcome of this tool call is unknown: ${why}. ${runs}`, 'tool_interrupted');
}

const HOST_ENDED = 'the host ended while the call ran';

/** The outcome of a call that an earlier owner may have sent, and that is not sent again. */
export const INTERRUPTED = unknownOutcome(HOST_ENDED, 1);
