/** Questions as a session asks them. */
import type { HookReply, HookRequest, Hooks } from '@coxswain/ports';
import { type HookPoint, type JsonObject, type Message, sessionRef } from '@coxswain/protocol';

/** A session. */
export const ref = sessionRef('s1');

/** What all payloads have. */
export const payloadOf = (event: HookPoint, own: JsonObject = {}): JsonObject => ({
  event,
  session: { id: 's1' },
  persona: 'assistant',
  turn: 3,
  ...own,
});

/** The payload of a tool point. */
export const toolPayload = (event: HookPoint, args: JsonObject = { command: 'ls' }): JsonObject =>
  payloadOf(event, { tool: { name: 'run_command', args, call_id: 'c1' } });

/** Asks the first registration of a point. */
export function askFirst(
  hooks: Hooks,
  point: HookPoint,
  payload: JsonObject = payloadOf(point),
  more: Partial<HookRequest> & { readonly signal?: AbortSignal } = {},
): Promise<HookReply> {
  const { signal = new AbortController().signal, ...rest } = more;
  const registration = hooks.table().find((one) => one.point === point);
  if (!registration) throw new Error(`nothing is registered at ${point}`);
  const request: HookRequest = {
    ref,
    effectId: '7-0',
    registration,
    payload,
    transcript: () => [userMessage('hello')],
    onFeedback: () => undefined,
    ...rest,
  };
  return hooks.ask(request, signal);
}

/** A message of a user. */
export const userMessage = (text: string): Message => ({ role: 'user', content: [{ type: 'text', text }] });
