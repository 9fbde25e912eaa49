/** Sends commands as HTTP requests to a gateway, and waits for their receipts. */
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
import { checkedPayload } from '../command-form.ts';
import { newCommandId } from '../fresh-ids.ts';
import {
  type BodyInput,
  checkedCommandId,
  RECEIPT_TIMEOUT_MS,
  type SendOptions,
  type SendStage,
  STORED_WITHIN_MS,
  type WireSentCommand,
} from '../outgoing-command.ts';
import { type GatewayRequest, type GatewayRequests, mayPass } from './gateway-requests.ts';
import { errorOf, ProblemError } from './problem-errors.ts';
import type { StartedSessions } from './started-sessions.ts';

/** The maximum time that a gateway waits for a receipt; a longer wait sends the request again. */
const GATEWAY_WAITS_MAX_MS = 60_000;

/** The dependencies of sending a command. */
export interface CommandGateway {
  readonly requests: GatewayRequests;
  readonly started: StartedSessions;
}

/** Sends one command. Throws the same errors as over NATS; a rejection by the gateway has the gateway's code. */
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
  // The same command can be sent again, so that each stage has its own wait.
  const startedAtMs = performance.now();
  if (wait === 'delivered' && acceptedWithinMs !== undefined && acceptedWithinMs < timeoutMs)
    await sending.settled('accepted', startedAtMs + acceptedWithinMs);
  const sent = await (wait === 'stored' ? sending.stored() : sending.settled(wait, startedAtMs + timeoutMs));
  if (verb === 'start') gateway.started.note(ref.sessionId);
  return sent;
}

/** One command, sent with retries. */
class Sending {
  readonly #gateway: CommandGateway;
  readonly #request: GatewayRequest;
  readonly #ref: SessionRef;
  readonly #commandId: CommandId;
  /** Whether this client generated the id, so that no other client can have used it. */
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
    // Stated explicitly: by default the gateway waits for the acceptance of a start.
    return this.#answered('accepted', 0, () => ({ query: { wait: 'stored' } }));
  }

  /** @param untilMs The deadline, on the clock of `performance.now()`. */
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
        // A command with an answer is stored, even if its gateway fails later.
        const { sessionId } = this.#ref;
        const unanswered = { commandId: this.#commandId, sessionId, awaited, waitedMs };
        if (mayPass(error) && this.#answers > 0) throw new ReceiptTimeoutError(unanswered);
        if (mayPass(error)) throw new CommandNotStoredError(this.#commandId, toClientError(error));
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
    // A repetition that this client sent only to continue waiting is not one for the caller.
    const isOurs = this.#isOwnId && this.#answers > 0;
    this.#answers++;
    const cancellation = ended?.data;
    const sent = {
      commandId: this.#commandId,
      seq,
      // A start that repeats another one stays a repetition.
      duplicate: isOurs ? repeatsAnother(read?.data, this.#commandId) : duplicate,
      ...(cancellation ? { cancellation } : {}),
    };
    if (!read) return sent;
    const { message: _, ...first } = read.data;
    return { ...sent, receipt: isOurs ? first : read.data };
  }
}

/** Whether a start repeats one with another command id. */
function repeatsAnother(receipt: Receipt | undefined, commandId: string): boolean {
  return receipt?.duplicate === true && receipt.detail?.command_id !== commandId;
}

/** The members of a response that contain the outcome of `cancel_call`. */
function cancellationOf(answer: unknown): unknown {
  const { outcome, call_id, tool, reason } = (answer ?? {}) as Record<string, unknown>;
  return { outcome, call_id, tool, reason };
}

function toClientError(error: unknown): unknown {
  return error instanceof ProblemError ? errorOf(error.problem) : error;
}

/** Builds the request of a command. @param body The whole body as on NATS; the request uses the field names of HTTP. */
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

/** Encodes one segment of a path. Dots would change the path. */
function segment(field: string, value: unknown): string {
  const text = String(value);
  if (text !== '.' && text !== '..') return encodeURIComponent(text);
  throw new CommandRejectedError('invalid_field', `${field}: ${text} is not a valid id`, { field });
}
