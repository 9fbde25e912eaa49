/**
 * Converts the steps of personas to requests of served work, and their ends to results.
 *
 * PERSONA-1  A step is repeatable work. Its session moves it after its start, under another key: the text that was
 *            streamed so far is void then.
 * PERSONA-2  Parts and results of an instance are untrusted and validated strictly. After a missing or invalid part, no
 *            further part is delivered; the result contains the whole message.
 */
import type { Ask, AskEnd, Asking, OfferedData, ServedAddress } from '@coxswain/bus';
import type { ModelPart, ModelResult, PersonaStep, ServedPersonas, StepEnd } from '@coxswain/ports';
import {
  type JsonObject,
  PERSONA_SERVICE_BOUNDS,
  SERVED_LIVENESS,
  SESSION_LEFT,
  StepPart,
  type StepRequest,
  StepResult,
} from '@coxswain/protocol';

/** Creates the function that runs one attempt at a step. @param offered offers requests that are too long for a message. */
export function createPersonaSteps(asking: Asking, offered: Pick<OfferedData, 'offer'>): ServedPersonas['step'] {
  return async (of, onPart, signal) => {
    const { ref, epoch, attempt, persona, version, request } = of;
    const bytes = Buffer.from(JSON.stringify(wireRequest(of)));
    if (bytes.length > PERSONA_SERVICE_BOUNDS.requestMaxBytes) return ended(tooLong(bytes.length));
    const isLong = bytes.length > PERSONA_SERVICE_BOUNDS.requestInlineMaxBytes;
    const offer = isLong ? offered.offer((want) => (want === 'request' ? bytes : null)) : null;
    const to: ServedAddress = { kind: 'personas', tenant: ref.tenant, name: persona, version };
    const key = (inEpoch: number) => `${request.idempotencyKey}-${inEpoch}-${attempt}`;
    // Stop the steps that earlier owners of the session started: their results are no longer used. An owner may have
    // started none, so the newest one is not always the last owner's.
    const oldest = Math.max(of.firstRequestEpoch, epoch - STOPPED_EPOCHS_MAX);
    for (let earlier = epoch - 1; earlier >= oldest; earlier--)
      void asking.stop({ key: key(earlier), ref, to, epoch }, 'its session has another owner');
    let startedBy: string | null = null;
    const parts = new PartReader(onPart);
    // The session's next owner does not resume a running step, so a step is also stopped when its session leaves this
    // host.
    const stopping = new AbortController();
    const aborted = () => stopping.abort(signal.reason === SESSION_LEFT ? 'its host has left it' : signal.reason);
    signal.addEventListener('abort', aborted, { once: true });
    if (signal.aborted) aborted();
    const ask: Ask = {
      key: key(epoch),
      ref,
      epoch,
      to,
      traits: STEP_TRAITS,
      request: {
        call_id: `step-${attempt}`,
        args: offer
          ? { fetch: { subject: offer.subject } }
          : { request: JSON.parse(bytes.toString('utf8')) as JsonObject },
      },
      traceparent: request.traceparent,
      onProgress: (text) => parts.take(text),
      onFeedback: () => undefined,
      onStarted(instance) {
        if (startedBy !== null) return;
        startedBy = instance;
        of.onTaken(instance);
      },
    };
    try {
      const end = await asking.ask(ask, stopping.signal);
      return stepEnd(end, startedBy, signal.aborted);
    } finally {
      signal.removeEventListener('abort', aborted);
      parts.end();
      offer?.withdraw();
    }
  };
}

/** Earlier owners whose steps are stopped. */
const STOPPED_EPOCHS_MAX = 3;

/** A step that no instance accepts within this time waits in its session, which asks again. Milliseconds. */
const STEP_UNACCEPTED_MAX_MS = SERVED_LIVENESS.ttlMs;

const STEP_TRAITS: Ask['traits'] = {
  isRepeatable: true,
  isHeld: false,
  movesMax: 0,
  unacceptedMaxMs: STEP_UNACCEPTED_MAX_MS,
  endsUnserved: true,
  silentAfterMs: SERVED_LIVENESS.ttlMs,
  isStreamed: true,
};

/** @param startedBy the instance that started the step; null if none did. */
function stepEnd(end: AskEnd, startedBy: string | null, isAborted: boolean): StepEnd {
  if (end.type === 'ended' && end.status === 'ok') {
    const read = StepResult.safeParse(end.result.detail?.step);
    if (!read.success) return ended(broken('the response is not from a model'));
    // The instance is shutting down and could not complete the step.
    if (read.data.status === 'cancelled' && !isAborted && startedBy !== null)
      return { status: 'lost', instance: startedBy, cause: 'handed_back' };
    return ended(resultOf(read.data));
  }
  if (end.type === 'unaccepted' || startedBy === null) return { status: 'unserved' };
  if (end.type === 'lost') return { status: 'lost', instance: startedBy, cause: 'gone' };
  const isHandedBack = end.type === 'ended' && (end.status === 'cancelled' || end.result.detail?.handed_back === true);
  if (end.type === 'cancelled' || isHandedBack) return { status: 'lost', instance: startedBy, cause: 'handed_back' };
  const [content] = end.type === 'ended' ? end.result.content : [];
  return ended(broken(content?.type === 'text' ? content.text : 'the step failed in the persona service'));
}

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
