/**
 * Personas that services on NATS serve: their steps, and their tools.
 *
 * P1: A step is sent like a tool call, to the instances of one persona version. Unlike a tool call it may be started
 *     again. So its instance is declared dead as soon as the server reports no subscriber for it.
 * P2: Each try of a step has its own key, so that late answers to an abandoned try are ignored. If no instance takes a
 *     try in time, it is sent again under another key. An instance that still holds the earlier message must not start
 *     it.
 * P3: Parts and results of an instance are untrusted and validated strictly. After a missing or invalid part, no
 *     further part is delivered; the result contains the whole message.
 */
import { randomUUID } from 'node:crypto';
import { inboxPrefixOf } from '@coxswain/bus';
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

/** Personas that services on NATS serve. */
export interface NatsPersonas {
  readonly personas: ServedPersonas;
  /** The tools that run in the personas' processes, for sessions whose persona is served. */
  readonly tools: ToolSource;
  /** Unsubscribes. Open steps and calls end here, and continue in their instances. */
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
 * Creates the persona ports on this connection. Resolves when every announcement is known.
 * @throws NatsUnavailableError, NatsRefusedError, StreamConfigMismatchError.
 */
export async function createNatsPersonas(nc: NatsConnection, log: Log): Promise<NatsPersonas> {
  const presence = await watchPersonaPresence(nc, log);
  const calls = createNatsToolCalls(nc, presence, log, ROUTES);
  const approvals = createApprovalQuestions(nc);
  const hooks = createPersonaHookQuestions(nc, log, presence);
  const inbox = createInbox(inboxPrefixOf(nc));
  /** Requests that are too large to send inline, by the last token of the subject that instances fetch them from. */
  const fetched = new Map<string, Buffer>();
  /** Number of abandoned messages of a try that no instance took, by the key of the try. */
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
    const { ref, epoch, attempt, persona, version, request } = of;
    const bytes = Buffer.from(JSON.stringify(wireRequest(of)));
    if (bytes.length > PERSONA_SERVICE_BOUNDS.requestMaxBytes) return ended(tooLong(bytes.length));
    const isLong = bytes.length > PERSONA_SERVICE_BOUNDS.requestInlineMaxBytes;
    // Every tenant may publish to this inbox. Only the random token protects a request from the other tenants.
    const token = randomUUID();
    if (isLong) fetched.set(token, bytes);
    const args = isLong
      ? { fetch: { subject: `${inbox}.c.${token}`, bytes: bytes.length } }
      : { request: JSON.parse(bytes.toString('utf8')) as JsonObject };
    const key = (inEpoch: number, n: number) => `${request.idempotencyKey}-${inEpoch}-${n}`;
    const tool = servedAs(persona, version);
    // Stop the step that an earlier owner of the session started: its result is no longer used.
    if (of.firstRequestEpoch < epoch)
      for (const n of [attempt, resent(attempt, 1)])
        void calls.stop({ idempotencyKey: key(epoch - 1, n), ref, tool, epoch }, 'its session has another owner');
    const ofTry = key(epoch, attempt);
    const before = untaken.get(ofTry) ?? 0;
    untaken.delete(ofTry);
    let taken: string | null = null;
    const parts = new PartReader(onPart);
    // The session's next owner does not resume a running step, so a step is also stopped when its session leaves this
    // host.
    const stopping = new AbortController();
    const aborted = () => stopping.abort(signal.reason === SESSION_LEFT ? 'its host has left it' : signal.reason);
    signal.addEventListener('abort', aborted, { once: true });
    if (signal.aborted) aborted();
    try {
      const outcome = await calls.call(
        {
          idempotencyKey: key(epoch, resent(attempt, before)),
          ref,
          callId: `step-${attempt}`,
          tool,
          args,
          epoch,
          isRepeatable: true,
          isSentAgain: attempt > 0 || before > 0,
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
        // The instance is shutting down and could not complete the step.
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

/**
 * The number of a message of a try: the try plus 1,000 for each abandoned message. There are far fewer than 1,000
 * tries.
 */
const resent = (tries: number, before: number) => tries + 1_000 * before;
/** Maximum tries that are remembered with abandoned messages; beyond it, the oldest is dropped. */
const UNTAKEN_MAX = 4_096;

/** Delivers parts in order, and none after a gap. */
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
    // Invalid JSON: no schema accepts undefined.
    return undefined;
  }
}
