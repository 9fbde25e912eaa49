/** The outcome of a call that somebody has taken up: a command for workers, whose subject the broker keeps for them. */
import { type CamelCased, parseCallOutcome, pathText, type SessionRef, ToolResult, toWire } from '@coxswain/protocol';
import { CommandRejectedError, InvalidOptionError } from './client-errors.ts';
import type { SendOptions, WireSentCommand } from './outgoing-command.ts';
import { type CommandBus, sendPayload } from './send-command.ts';

/** A call that is answered later, by the members of the context that the function of its `longRunning` tool got. */
export interface TakenUpCall {
  readonly idempotencyKey: string;
  readonly toolCallId: string;
  readonly epoch: number;
}

/** How it ended. */
export interface CallEnd {
  readonly status: 'ok' | 'error' | 'cancelled';
  /** A text stands for a result of that text. */
  readonly result: string | CamelCased<ToolResult>;
  readonly durationMs?: number | undefined;
}

/** The same in the form of the wire. */
export type WireCallEnd = Omit<CallEnd, 'result'> & { readonly result: string | ToolResult };

/** Sends it. Throws as sendCommand does, and CommandRejectedError where the key is not of this session. @internal */
export async function sendCallOutcome(
  bus: CommandBus,
  ref: SessionRef,
  call: TakenUpCall,
  end: WireCallEnd,
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

/** The end of a call in the form of the wire. @throws InvalidOptionError naming a member that a result does not have. @internal */
export function callEndToWire(end: CallEnd): WireCallEnd {
  const { result } = end;
  if (typeof result === 'string') return { ...end, result };
  const form = toWire(ToolResult, result);
  // Names alone are mapped here: the command is checked before it is sent.
  if (form.ok) return { ...end, result: form.value as ToolResult };
  const option = pathText(['result', ...form.path]);
  throw new InvalidOptionError(`the option ${option} ${form.words}`, option);
}
