/** Commands as requests to a gateway: which address a verb has, and how its receipt is waited for. */
import {
  CallCancellation,
  type CommandId,
  formatTraceparent,
  httpBodyOf,
  type JsonObject,
  parseTraceparent,
  Receipt,
  type SessionRef,
  type Verb,
} from '@coxswain/protocol';
import {
  CommandNotStoredError,
  CommandRejectedError,
  CoxswainError,
  GatewayUnreachableError,
  ReceiptTimeoutError,
} from '../client-errors.ts';
import { newCommandId } from '../fresh-ids.ts';
import {
  type BodyInput,
  checkedCommandId,
  checkedPayload,
  RECEIPT_TIMEOUT_MS,
  type SendOptions,
  type SendStage,
  STORED_WITHIN_MS,
  type WireSentCommand,
} from '../outgoing-command.ts';
import { type GatewayRequest, type GatewayRequests, mayPass } from './gateway-requests.ts';
import { errorOf, ProblemError } from './problem-errors.ts';
import type { StartedSessions } from './started-sessions.ts';

/** The longest that a gateway waits for a receipt; for more it is asked again. */
const GATEWAY_WAITS_MAX_MS = 60_000;

/** What commands are sent by. */
export interface CommandGateway {
  readonly requests: GatewayRequests;
  readonly started: StartedSessions;
}

/** Sends one command. Throws as over the bus; what a gateway refuses is rejected by its code. */
export async function sendOverHttp<V extends Verb>(
  gateway: CommandGateway,
  ref: SessionRef,
  verb: V,
  body: BodyInput<V>,
  {
    id,
    actor,
    wait = 'stored',
    timeoutMs = RECEIPT_TIMEOUT_MS,
    acceptedWithinMs,
    signal,
    traceparent,
  }: SendOptions<SendStage>,
): Promise<WireSentCommand> {
  const given = body as JsonObject & { readonly id?: string };
  if (actor !== undefined || 'actor' in given)
    throw new CommandRejectedError('unknown_field', 'actor: over HTTP, the token determines the actor', {
      field: 'actor',
    });
  checkedPayload(verb, given, undefined);
  const chosenId = given.id ?? id;
  const commandId = checkedCommandId(chosenId ?? newCommandId());
  const traced = parseTraceparent(traceparent);
  const headers = traced ? { headers: { traceparent: formatTraceparent(traced) } } : {};
  const request = { ...requestOf(ref, verb, { ...given, id: commandId }), signal, ...headers };
  const sending = new Sending(gateway, request, ref, commandId, chosenId === undefined);
  // The same command again changes nothing, so that each stage may be waited for by itself.
  const startedAtMs = performance.now();
  if (wait === 'delivered' && acceptedWithinMs !== undefined && acceptedWithinMs < timeoutMs)
    await sending.settled('accepted', startedAtMs + acceptedWithinMs);
  const sent = await (wait === 'stored' ? sending.stored() : sending.settled(wait, startedAtMs + timeoutMs));
  if (verb === 'start') gateway.started.note(ref.sessionId);
  return sent;
}

/** One command, sent as often as it takes. */
class Sending {
  readonly #gateway: CommandGateway;
  readonly #request: GatewayRequest;
  readonly #ref: SessionRef;
  readonly #commandId: CommandId;
  /** Whether nobody else can have used the id: what is a repetition then is one of ours. */
  readonly #isOwnId: boolean;
  #answers = 0;

  constructor(
    gateway: CommandGateway,
    request: GatewayRequest,
    ref: SessionRef,
    commandId: CommandId,
    isOwnId: boolean,
  ) {
    this.#gateway = gateway;
    this.#request = request;
    this.#ref = ref;
    this.#commandId = commandId;
    this.#isOwnId = isOwnId;
  }

  stored(): Promise<WireSentCommand> {
    // Said for each command: of a start the gateway would otherwise wait for the session to accept it.
    return this.#answered('accepted', 0, () => ({ query: { wait: 'stored' } }));
  }

  /** @param untilMs on the clock of `performance`. */
  settled(stage: Exclude<SendStage, 'stored'>, untilMs: number): Promise<WireSentCommand> {
    const waitedMs = Math.ceil(untilMs - performance.now());
    return this.#answered(stage, waitedMs, () => {
      const leftMs = Math.max(1, Math.ceil(untilMs - performance.now()));
      const waitsMs = Math.min(GATEWAY_WAITS_MAX_MS, leftMs);
      return { query: { wait: stage, timeout_ms: waitsMs }, waitsMs, goesOn: waitsMs < leftMs };
    });
  }

  async #answered(
    awaited: Exclude<SendStage, 'stored'>,
    waitedMs: number,
    ask: () => Pick<GatewayRequest, 'query' | 'waitsMs'> & { readonly goesOn?: boolean },
  ): Promise<WireSentCommand> {
    const { requests } = this.#gateway;
    for (;;) {
      let goesOn = false;
      try {
        const answer = await requests.persist(this.#request.signal, STORED_WITHIN_MS, () => {
          const { goesOn: mayGoOn = false, ...asked } = ask();
          goesOn = mayGoOn;
          return requests.once({ ...this.#request, ...asked }).catch((error: unknown) => {
            throw this.#isFoundLater(error) ? new GatewayUnreachableError('no gateway finds the session yet') : error;
          });
        });
        return this.#read(answer, awaited === 'outcome');
      } catch (error) {
        // A command that has been answered once is stored, whatever has become of its gateway.
        const { sessionId } = this.#ref;
        const unanswered = { commandId: this.#commandId, sessionId, awaited, waitedMs };
        if (mayPass(error) && this.#answers > 0) throw new ReceiptTimeoutError(unanswered);
        if (mayPass(error)) throw new CommandNotStoredError(this.#commandId, told(error));
        if (!(error instanceof ProblemError)) throw error;
        if (error.problem.code === 'receipt_timeout') {
          this.#answers++;
          if (goesOn) continue;
        }
        throw errorOf(error.problem, unanswered);
      }
    }
  }

  #isFoundLater(error: unknown): boolean {
    const isNotFound = error instanceof ProblemError && error.problem.code === 'session_not_found';
    return isNotFound && this.#gateway.started.isNew(this.#ref.sessionId);
  }

  #read(answer: unknown, withOutcome: boolean): WireSentCommand {
    const { command_id, seq, duplicate, receipt } = (answer ?? {}) as Record<string, unknown>;
    const read = receipt === undefined ? null : Receipt.safeParse(receipt);
    const isOne = command_id === this.#commandId && typeof seq === 'number' && typeof duplicate === 'boolean';
    const ended = withOutcome ? CallCancellation.safeParse(cancellationOf(answer)) : null;
    if (!isOne || read?.success === false || ended?.success === false)
      throw new CoxswainError(
        'answer_unreadable',
        'the response is not from a gateway of this version: it is not the response to a command',
      );
    // What this client has itself sent once more, only to wait on, is no repetition to whoever has sent it once.
    const isOurs = this.#isOwnId && this.#answers > 0;
    this.#answers++;
    const cancellation = ended?.data;
    const sent = {
      commandId: this.#commandId,
      seq,
      // A start that repeats another one is a repetition, however often this client asks.
      duplicate: isOurs ? repeatsAnother(read?.data, this.#commandId) : duplicate,
      ...(cancellation ? { cancellation } : {}),
    };
    if (!read) return sent;
    const { message: _, ...first } = read.data;
    return { ...sent, receipt: isOurs ? first : read.data };
  }
}

/** Whether a start repeats one that has another command id. */
function repeatsAnother(receipt: Receipt | undefined, commandId: string): boolean {
  return receipt?.duplicate === true && receipt.detail?.command_id !== commandId;
}

/** The members of an answer that say how the cancelling of a call ended. */
function cancellationOf(answer: unknown): unknown {
  const { outcome, call_id, tool, reason } = (answer ?? {}) as Record<string, unknown>;
  return { outcome, call_id, tool, reason };
}

function told(error: unknown): unknown {
  return error instanceof ProblemError ? errorOf(error.problem) : error;
}

/** The request of a command. @param body the whole body as on NATS; the request has the field names of HTTP. */
function requestOf(
  { sessionId }: SessionRef,
  verb: Verb,
  body: JsonObject,
): Required<Pick<GatewayRequest, 'method' | 'path' | 'body'>> {
  const at = `/v1/sessions/${sessionId}`;
  const written = httpBodyOf(body);
  const { call_id, target_command_id, ...withoutTarget } = written;
  switch (verb) {
    case 'start':
      return { method: 'POST', path: '/v1/sessions', body: { ...written, session_id: sessionId } };
    case 'delete':
      return { method: 'DELETE', path: at, body: written };
    case 'approve':
      return { method: 'POST', path: `${at}/approvals/${segment('call_id', call_id)}`, body: withoutTarget };
    case 'cancel_call':
      return { method: 'POST', path: `${at}/calls/${segment('call_id', call_id)}/cancel`, body: withoutTarget };
    case 'revoke':
      return {
        method: 'DELETE',
        path: `${at}/pending/${segment('command_id', target_command_id)}`,
        body: withoutTarget,
      };
    case 'replace':
      return { method: 'PUT', path: `${at}/pending/${segment('command_id', target_command_id)}`, body: withoutTarget };
    default:
      return { method: 'POST', path: `${at}/${verb}`, body: written };
  }
}

/** One part of an address. Two dots would lead to another. */
function segment(field: string, value: unknown): string {
  const text = String(value);
  if (text !== '.' && text !== '..') return encodeURIComponent(text);
  throw new CommandRejectedError('invalid_field', `${field}: there is none of this name`, { field });
}
