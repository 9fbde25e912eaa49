/**
 * Personas that are served on the bus: their steps, and their tools.
 *
 * P1: A step is asked as a call of a tool is, of the instances of one version. Unlike a call it may be begun again, so whoever
 *     has it is given up as soon as nobody listens there any more.
 * P2: Each try has a key of its own: what is said of one that was given up is nobody's answer. So has each sending of a try that
 *     nobody has taken in time: under the key of the one before it may not begin any more (it may lie with somebody still).
 * P3: What an instance says is a stranger's: parts and results are read strictly, and a part that was missed is the last
 *     that is handed on, as the result has all of them.
 */
import { randomUUID } from 'node:crypto';
import type { Log, ModelPart, ModelResult, PersonaStep, ServedPersonas, StepEnd, ToolSource } from '@coxswain/ports';
import {
  HEADERS,
  isKeyOf,
  type JsonObject,
  PERSONA_SERVICE_BOUNDS,
  SESSION_LEFT,
  StepFetch,
  StepPart,
  type StepRequest,
  StepResult,
  subjects,
  type ToolDefinition,
  versionToken,
} from '@coxswain/protocol';
import { createInbox, headers, type NatsConnection } from '@nats-io/nats-core';
import { createApprovalQuestions } from './ask-approval.ts';
import { createPersonaHookQuestions } from './ask-persona-hooks.ts';
import { type CallRoutes, createNatsToolCalls } from './nats-tool-calls.ts';
import { nameAndVersion, servedAs, watchPersonaPresence } from './persona-presence.ts';
import { unavailable } from './tool-answers.ts';
import { inboxPrefixOf } from './wire.ts';

/** Personas that are served on the bus. */
export interface NatsPersonas {
  readonly personas: ServedPersonas;
  /** The tools that run in their processes, for sessions whose persona is served. */
  readonly tools: ToolSource;
  /** Ends it. What runs elsewhere goes on there, and nobody here hears of it. */
  stop(): Promise<void>;
}

const routed =
  (build: (tenant: string, name: string, version: string) => string) => (tenant: string, served: string) => {
    const [name, version] = nameAndVersion(served);
    return build(tenant, name, versionToken(version));
  };
const ROUTES: CallRoutes = {
  asked: routed(subjects.persona),
  all: routed(subjects.personaInstances),
  one: (tenant, served, instance) => routed((...at) => subjects.personaInstance(...at, instance))(tenant, served),
  to: (tenant, served, instance) => routed((...at) => subjects.personaCallTo(...at, instance))(tenant, served),
};

/**
 * Personas on this connection. Resolves when every announcement is known.
 * @throws NatsUnavailableError, NatsRefusedError, StreamConfigMismatchError.
 */
export async function createNatsPersonas(nc: NatsConnection, log: Log): Promise<NatsPersonas> {
  const presence = await watchPersonaPresence(nc, log);
  const calls = createNatsToolCalls(nc, presence, log, ROUTES);
  const approvals = createApprovalQuestions(nc);
  const hooks = createPersonaHookQuestions(nc, log, presence);
  const inbox = createInbox(inboxPrefixOf(nc));
  /** Requests that are too long for a question, by the last token of where they are fetched. */
  const fetched = new Map<string, Buffer>();
  /** How many sendings of a step were given up, untaken, by the key of its try. */
  const untaken = new Map<string, number>();
  const subscription = nc.subscribe(`${inbox}.c.*`, {
    callback(error, message) {
      if (error) return;
      const request = fetched.get(message.subject.slice(inbox.length + 3));
      const wanted = request && StepFetch.safeParse(jsonIn(message.data));
      if (!request || !wanted?.success) return;
      const head = headers();
      head.set(HEADERS.total, String(request.length));
      const { offset } = wanted.data;
      message.respond(request.subarray(offset, offset + PERSONA_SERVICE_BOUNDS.requestPartBytes), { headers: head });
    },
  });

  async function step(of: PersonaStep, onPart: (part: ModelPart) => void, signal: AbortSignal): Promise<StepEnd> {
    const { ref, epoch, tries, persona, version, request } = of;
    const bytes = Buffer.from(JSON.stringify(wireRequest(of)));
    if (bytes.length > PERSONA_SERVICE_BOUNDS.requestMaxBytes) return ended(tooLong(bytes.length));
    const isLong = bytes.length > PERSONA_SERVICE_BOUNDS.requestInlineMaxBytes;
    // The inbox serves all tenants, and each of them may publish there: the token is what keeps another one's request secret.
    const token = randomUUID();
    if (isLong) fetched.set(token, bytes);
    const args = isLong
      ? { fetch: { subject: `${inbox}.c.${token}`, bytes: bytes.length } }
      : { request: JSON.parse(bytes.toString('utf8')) as JsonObject };
    const key = (inEpoch: number, n: number) => `${request.idempotencyKey}-${inEpoch}-${n}`;
    const tool = servedAs(persona, version);
    // What an owner before this one has asked for is wanted by nobody any more.
    if (of.askedIn < epoch)
      for (const n of [tries, resent(tries, 1)])
        void calls.stop({ idempotencyKey: key(epoch - 1, n), ref, tool, epoch }, 'its session has another owner');
    const ofTry = key(epoch, tries);
    const before = untaken.get(ofTry) ?? 0;
    untaken.delete(ofTry);
    let taken: string | null = null;
    const parts = new PartReader(onPart);
    // Nobody takes a step up again where its session goes on: it is told to stop there, too.
    const stopping = new AbortController();
    const aborted = () => stopping.abort(signal.reason === SESSION_LEFT ? 'its host has left it' : signal.reason);
    signal.addEventListener('abort', aborted, { once: true });
    if (signal.aborted) aborted();
    try {
      const outcome = await calls.call(
        {
          idempotencyKey: key(epoch, resent(tries, before)),
          ref,
          callId: `step-${tries}`,
          tool,
          args,
          epoch,
          isRepeatable: true,
          isSentAgain: tries > 0 || before > 0,
          traceparent: request.traceparent,
          onProgress: (text) => parts.take(text),
          onFeedback: () => undefined,
          onTaken(instance) {
            if (instance === undefined || taken !== null) return;
            taken = instance;
            of.onTaken(instance);
          },
        },
        stopping.signal,
      );
      const instance = taken as string | null;
      const isHandedBack = outcome.result.detail?.handed_back === true;
      if (outcome.status === 'ok') {
        const read = StepResult.safeParse(outcome.result.detail?.step);
        if (!read.success) return ended(broken('the response is not from a model'));
        // Whoever runs it ends, and could not wait for the rest.
        if (read.data.status === 'cancelled' && !signal.aborted && instance !== null)
          return { status: 'lost', instance, cause: 'handed_back' };
        return ended(resultOf(read.data));
      }
      if (instance === null && outcome.status === 'lost') {
        const [oldest] = untaken.keys();
        if (untaken.size >= UNTAKEN_MAX && oldest !== undefined) untaken.delete(oldest);
        untaken.set(ofTry, before + 1);
      }
      if (outcome.status === 'unavailable' || instance === null) return { status: 'unserved' };
      if (outcome.status === 'cancelled' || isHandedBack) return { status: 'lost', instance, cause: 'handed_back' };
      if (outcome.status === 'lost') return { status: 'lost', instance, cause: 'gone' };
      const [said] = outcome.result.content;
      return ended(broken(said?.type === 'text' ? said.text : 'the step failed in the persona service'));
    } finally {
      signal.removeEventListener('abort', aborted);
      parts.end();
      fetched.delete(token);
    }
  }

  const personas: ServedPersonas = {
    find(tenant, name) {
      const found = presence.announcement(tenant, name);
      return found && { definition: found.definition, version: found.version };
    },
    names: (tenant) => presence.names(tenant),
    isServed: (tenant, name, version) => presence.isServed(tenant, servedAs(name, version)),
    pause: (tenant, name) => presence.pause(tenant, name),
    onChange: (changed) => presence.onChange(changed),
    step,
    askHook: (request, signal) => hooks.ask(request, signal),
  };

  const tools: ToolSource = {
    async open({ ref, served }) {
      const announced = served && presence.announcement(ref.tenant, served.name);
      const found: readonly ToolDefinition[] = served?.tools ?? announced?.tools ?? [];
      const at = served ? servedAs(served.name, served.version) : '';
      const about = (idempotencyKey: string, epoch: number) => ({ idempotencyKey, ref, tool: at, epoch });
      return {
        tools: found,
        async call(call, signal) {
          if (!isKeyOf(call.idempotencyKey, ref.tenant, ref.sessionId))
            return unavailable('the call is of another session');
          return calls.call({ ...call, tool: at, member: call.tool }, signal);
        },
        needsApproval: (question, signal) =>
          approvals.ask(ROUTES.asked(ref.tenant, at), question, question.tool, signal),
        probe: (key, _tool, epoch) => calls.probe(about(key, epoch)),
        stop: (key, _tool, reason, epoch) => calls.stop(about(key, epoch), reason),
        close: async () => [],
      };
    },
  };

  return {
    personas,
    tools,
    async stop() {
      hooks.stop();
      approvals.stop();
      subscription.unsubscribe();
      calls.close();
      presence.stop();
    },
  };
}

/** The number of a sending of a try, of which so many were given up before. There are far fewer tries. */
const resent = (tries: number, before: number) => tries + 1_000 * before;
/** Steps of one host of which a sending was given up and that were not sent again; the oldest are forgotten. */
const UNTAKEN_MAX = 4_096;

/** Hands parts on in their order, and none behind a gap. */
class PartReader {
  readonly #onPart: (part: ModelPart) => void;
  #next = 0;
  #over = false;

  constructor(onPart: (part: ModelPart) => void) {
    this.#onPart = onPart;
  }

  take(text: string): void {
    if (this.#over) return;
    const read = StepPart.safeParse(jsonIn(text));
    if (!read.success || read.data.seq !== this.#next) {
      this.#over = true;
      return;
    }
    this.#next++;
    const { data } = read;
    if (data.type === 'call')
      this.#onPart({ type: 'call', callId: data.call_id, tool: data.tool, argsText: data.args_text });
    else this.#onPart({ type: data.type, text: data.text });
  }

  end(): void {
    this.#over = true;
  }
}

function wireRequest({ request }: PersonaStep): StepRequest {
  const { idempotencyKey, sessionId, turn, model, system, messages, tools, outputSchema, answered, compaction } =
    request;
  return {
    idempotency_key: idempotencyKey,
    session_id: sessionId,
    turn,
    model,
    system,
    messages: [...messages],
    tools: [...tools],
    ...(outputSchema === undefined ? {} : { output_schema: outputSchema }),
    ...(answered === undefined ? {} : { answered }),
    ...(compaction === undefined ? {} : { compaction }),
  };
}

function resultOf({ finish_reason, error, ...rest }: StepResult): ModelResult {
  return { ...rest, finishReason: finish_reason, ...(error === undefined ? {} : { error }) };
}

const ended = (result: ModelResult): StepEnd => ({ status: 'ended', result });

function broken(message: string): ModelResult {
  return {
    status: 'failed',
    message: { role: 'assistant', content: [] },
    finishReason: 'error',
    usage: { input_tokens: 0, output_tokens: 0 },
    error: { code: 'model_stream_broken', message },
    attempts: 0,
  };
}

function tooLong(bytes: number): ModelResult {
  return broken(`the request has ${bytes} bytes, at most ${PERSONA_SERVICE_BOUNDS.requestMaxBytes} are sent`);
}

function jsonIn(data: Uint8Array | string): unknown {
  try {
    return JSON.parse(typeof data === 'string' ? data : new TextDecoder().decode(data));
  } catch {
    // No JSON: no schema takes it.
    return undefined;
  }
}
