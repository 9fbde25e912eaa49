/** Sends the outcome of an accepted call: a command for workers. NATS permissions limit its subject to them. */
import type { AcceptedCall } from '@coxswain/bus';
import {
  type BackOff,
  type CallEnding,
  type CamelCased,
  delayAfter,
  failedCall,
  parseCallOutcome,
  pathText,
  type SessionRef,
  ToolResult,
  toWire,
} from '@coxswain/protocol';
import { CommandRejectedError, InvalidOptionError } from './client-errors.ts';
import type { SendOptions, WireSentCommand } from './outgoing-command.ts';
import { type CommandBus, sendPayload } from './send-command.ts';

/** The outcome of a call. */
export interface CallOutcome {
  readonly status: 'ok' | 'error' | 'cancelled';
  /** A string becomes a result with that text. */
  readonly result: string | CamelCased<ToolResult>;
  readonly durationMs?: number | undefined;
}

/** The outcome in its wire form. */
export type WireCallOutcome = Omit<CallOutcome, 'result'> & { readonly result: string | ToolResult };

/**
 * Sends an outcome.
 * @throws as `sendCommand`, and CommandRejectedError if the key belongs to another session.
 * @internal
 */
export async function sendCallOutcome(
  bus: CommandBus,
  ref: SessionRef,
  call: AcceptedCall,
  end: WireCallOutcome,
  options: SendOptions = {},
): Promise<WireSentCommand> {
  const prefix = `${ref.tenant}.${ref.sessionId}.`;
  if (!call.idempotencyKey.startsWith(prefix)) {
    const message = `the key ${call.idempotencyKey} belongs to another session`;
    throw new CommandRejectedError('invalid_field', message, { field: 'idempotencyKey' });
  }
  const { status, result, durationMs } = end;
  const whole =
    typeof result === 'string' ? { content: [{ type: 'text', text: result }], is_error: status !== 'ok' } : result;
  const body = {
    call_id: call.toolCallId,
    effect_id: call.idempotencyKey.slice(prefix.length),
    epoch: call.epoch,
    status,
    result: whole,
    ...(durationMs === undefined ? {} : { duration_ms: durationMs }),
    ...(options.actor === undefined ? {} : { actor: options.actor }),
  };
  const payload = new TextEncoder().encode(JSON.stringify(body));
  const parsed = parseCallOutcome(payload);
  if (!parsed.ok) {
    throw new CommandRejectedError(parsed.problem.code, parsed.problem.message, { field: parsed.problem.field });
  }
  return sendPayload(bus, ref, 'call_outcome', payload, options);
}

/** The maximum number of attempts to store an outcome, and the pauses between them. */
const ATTEMPTS_MAX = 120;
const PAUSES: BackOff = { firstMs: 100, maxMs: 5_000 };

/**
 * Stores the outcome of a call in the command stream, with retries. The id is the same each time, so it is applied once.
 * @returns whether it is stored.
 * @internal
 */
export async function storeCallOutcome(
  bus: CommandBus,
  ref: SessionRef,
  call: AcceptedCall,
  ending: CallEnding,
  problem: (message: string) => void,
): Promise<boolean> {
  const id = `outcome-${call.idempotencyKey.split('.').at(-1)}-${call.epoch}`;
  let end = ending;
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
    try {
      await sendCallOutcome(bus, ref, call, end, { id });
      return true;
    } catch (error) {
      if (bus.nc.isClosed()) break;
      // Commands that are consumed make space in a full stream.
      if (!(error instanceof CommandRejectedError) || error.code === 'quota_exceeded')
        await new Promise((resolve) => setTimeout(resolve, delayAfter(attempt, PAUSES)));
      // The result does not fit into a command: an error replaces it.
      else if (error.field !== undefined && end === ending)
        end = failedCall(`the call ran; ${error.message}`, 'tool_result_too_large');
      else break;
    }
  }
  problem(`the outcome of ${call.idempotencyKey} could not be sent`);
  return false;
}

/** Converts an outcome to its wire form. @throws InvalidOptionError for an unknown member of the result. @internal */
export function callOutcomeToWire(end: CallOutcome): WireCallOutcome {
  const { result } = end;
  if (typeof result === 'string') return { ...end, result };
  const form = toWire(ToolResult, result);
  // Only names are converted here: the command is validated before it is sent.
  if (form.ok) return { ...end, result: form.value as ToolResult };
  const option = pathText(['result', ...form.path]);
  throw new InvalidOptionError(`the option ${option} ${form.words}`, option);
}
