import type { BodyInput, BusSession } from '@coxswain/client';
import {
  natsBodyOf,
  nearestWord,
  parseStrictJson,
  parseTraceparent,
  problemOf,
  readStrictly,
  VERBS,
  type Verb,
} from '@coxswain/protocol';
import type { FastifyRequest } from 'fastify';
import type { RawData, WebSocket } from 'ws';
import * as z from 'zod';
import { expectMaySteer, isAllowed, VERB_SCOPES } from '../auth/mod.ts';
import { rejectReusedId, rejectUnknownFields, sendCounted, sendOptions, toStoredCommand } from '../commands/mod.ts';
import {
  busyProblem,
  GATEWAY_BOUNDS,
  type GatewayContext,
  type MemoryShare,
  Problem,
  principalOf,
  problemFrom,
  rateLimitedProblem,
  takeRequest,
} from '../context/mod.ts';
import { Waiting } from '../http/mod.ts';
import type { MonitoredSocket } from './monitored-socket.ts';
import { tracedCommand } from './trace-command.ts';

/** A start creates a session, but this WebSocket belongs to an existing one. */
const SOCKET_VERBS: readonly Verb[] = VERBS.filter((verb) => verb !== 'start');
const Ref = z.union([z.string().max(256), z.number()]);
const Command = z.strictObject({
  type: z.literal('command'),
  ref: Ref.optional(),
  verb: z.string().max(64),
  body: z.looseObject({}).optional(),
  wait: Waiting.shape.wait,
  // Browsers cannot set headers of a WebSocket, and one WebSocket sends many commands.
  traceparent: z
    .string()
    .max(256)
    .refine((text) => parseTraceparent(text) !== null, 'must be a traceparent of W3C Trace Context')
    .optional(),
  // In a query, this field is a text; here it is a number.
  timeout_ms: z.number().int().min(1).max(GATEWAY_BOUNDS.waitMaxMs).default(GATEWAY_BOUNDS.waitDefaultMs),
});

/** Handles commands over a WebSocket. Each response has the `ref` of its command. */
export class SocketCommands {
  readonly #context: GatewayContext;
  readonly #session: BusSession;
  readonly #request: FastifyRequest;
  readonly #socket: WebSocket;
  readonly #connection: Pick<MonitoredSocket, 'signal' | 'checkAccess'>;
  #inFlight = 0;

  constructor(
    context: GatewayContext,
    session: BusSession,
    request: FastifyRequest,
    socket: WebSocket,
    connection: Pick<MonitoredSocket, 'signal' | 'checkAccess'>,
  ) {
    this.#context = context;
    this.#session = session;
    this.#request = request;
    this.#socket = socket;
    this.#connection = connection;
  }

  /**
   * Handles a message. Errors are sent as a response. A message that arrives while the connection closes is ignored: its
   * token may be invalid, and it would get no response.
   */
  handle(data: RawData, isBinary: boolean): void {
    if (this.#connection.signal.aborted) return;
    let ref: z.infer<typeof Ref> | undefined;
    let share: MemoryShare | null = null;
    this.#inFlight++;
    void (async () => {
      try {
        // Each message counts against the rate limit: parsing an invalid one costs as much.
        const waitSeconds = takeRequest(this.#context, principalOf(this.#request));
        // Parsed before the limits are checked, so that a rejection has the `ref`. The server limits the message size.
        const value = parseMessage(data, isBinary);
        const named = Ref.safeParse((value as { readonly ref?: unknown } | null)?.ref);
        if (named.success) ref = named.data;
        if (this.#inFlight > GATEWAY_BOUNDS.socketCommandsMax)
          throw new Problem(
            'rate_limited',
            `${GATEWAY_BOUNDS.socketCommandsMax} commands of this socket are already queued`,
          );
        if (waitSeconds > 0) throw rateLimitedProblem(waitSeconds);
        // Until its answer, a command stays in memory, like the body of an HTTP request.
        const bytes = (data as Buffer).length + GATEWAY_BOUNDS.requestBytes;
        share = this.#context.bodies.take(bytes, principalOf(this.#request));
        if (!share) throw busyProblem('too many bodies of requests are read or handled');
        // As for each HTTP request. Checks end in the order of the commands, so the commands keep their order.
        const denied = await this.#connection.checkAccess();
        if (denied) throw denied;
        this.#connection.signal.throwIfAborted();
        this.#answer({ type: 'sent', ...(ref === undefined ? {} : { ref }), ...(await this.#send(value)) });
      } catch (error) {
        const problem = problemFrom(error);
        if (problem.status === 500) this.#context.log.error({ error }, 'a command over a WebSocket failed');
        this.#answer({ type: 'problem', ...(ref === undefined ? {} : { ref }), problem: problem.document });
      } finally {
        share?.release();
        this.#inFlight--;
      }
    })();
  }

  async #send(value: unknown) {
    const read = readStrictly(Command, value);
    if (!read.ok) {
      const members = `; the fields are ${Object.keys(Command.shape).join(', ')}`;
      const { code, message, field } = problemOf(read.problems, undefined, members);
      throw new Problem(code, message, { field });
    }
    const { verb: named, body = {}, wait, timeout_ms, traceparent } = read.data;
    const verb = verbOf(named);
    const principal = principalOf(this.#request);
    const scope = VERB_SCOPES[verb];
    if (!isAllowed(principal, scope)) throw new Problem('scope_missing', `${verb} needs the scope ${scope}`);
    if ('actor' in body)
      throw new Problem('unknown_field', 'unknown field "actor": the token determines the actor', { field: 'actor' });
    rejectUnknownFields(body, verb);
    expectMaySteer(principal, verb, body);
    const onNats = natsBodyOf(body) as BodyInput<Verb>;
    const { id } = onNats;
    const parent = parseTraceparent(traceparent) ?? this.#request.trace?.parent ?? null;
    const target = { sessionId: this.#session.id, verb };
    const sent = await tracedCommand(this.#context, target, parent, (traceparent) => {
      const waiting = { wait, timeout_ms };
      const options = sendOptions(verb, { principal, id, waiting, signal: this.#connection.signal, traceparent });
      return sendCounted(this.#context, verb, () => this.#session.wire.send(verb, onNats, options));
    });
    if (sent.duplicate && id !== undefined) {
      const repeated = { principal, commandId: id, verb, body: onNats };
      await rejectReusedId(this.#context.expensiveReads, this.#session, repeated);
    }
    return toStoredCommand(this.#session, sent);
  }

  #answer(message: object): void {
    if (this.#socket.readyState !== this.#socket.OPEN) return;
    const bytes = Buffer.from(JSON.stringify(message));
    const { socketMessages } = this.#context;
    const unread = socketMessages.take(bytes.length + GATEWAY_BOUNDS.socketChunkBytes, principalOf(this.#request));
    if (unread) this.#socket.send(bytes, { binary: false }, () => unread.release());
    else {
      // A client that does not read the responses is disconnected.
      this.#context.metrics.cutOff.inc({ kind: 'websocket' });
      this.#socket.terminate();
    }
  }
}

function verbOf(named: string): Verb {
  const verb = SOCKET_VERBS.find((one) => one === named);
  if (verb) return verb;
  const nearest = nearestWord(named, SOCKET_VERBS);
  const hint = nearest === null ? `there are ${SOCKET_VERBS.join(', ')}` : `the nearest is "${nearest}"`;
  throw new Problem('unknown_command', `there is no command ${JSON.stringify(named)} here; ${hint}`, { field: 'verb' });
}

function parseMessage(data: RawData, isBinary: boolean): unknown {
  if (isBinary) throw new Problem('invalid_json', 'messages must be JSON text');
  const text = Array.isArray(data)
    ? Buffer.concat(data).toString('utf8')
    : Buffer.from(data as Buffer).toString('utf8');
  const json = parseStrictJson(text);
  if (!json.ok) throw new Problem('invalid_json', `the message is not valid JSON: ${json.why}`);
  return json.value;
}
