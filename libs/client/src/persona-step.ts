/**
 * Runs a step of a served persona as a call. It reads or fetches the request, reports pieces as progress, and returns
 * the result.
 */
import { confirmed, fetchWhole, NatsUnavailableError } from '@coxswain/bus';
import { runModelStep, type ServableTool } from '@coxswain/handlers';
import {
  cutText,
  DEFAULT_TRAITS,
  isInboxSubject,
  type JsonObject,
  type ModelAnswered,
  type ModelAsked,
  ModelStepArgs,
  PERSONA_SERVICE_BOUNDS,
  problemSentences,
  readStrictly,
  type StepModels,
  type StepPart,
  StepRequest,
  type StepResult,
  type ToolCallContext,
  type ToolResult,
} from '@coxswain/protocol';
import type { NatsConnection } from '@nats-io/nats-core';
import type { StepLine } from './step-line.ts';

/** A piece of a model's answer. `again`: the attempt starts again. */
export type AnswerPart =
  | { readonly type: 'text' | 'reasoning'; readonly text: string }
  | { readonly type: 'call'; readonly callId: string; readonly tool: string; readonly argsText: string }
  | { readonly type: 'again' };

/** The part of a connection that steps use. @internal */
export interface StepWire {
  /** Fetches a request that is too long for a message, from an inbox of the host. @returns its JSON text. */
  fetch(subject: string): Promise<string>;
  /** Resolves when the messages that the server has sent so far are read, at most after a second. */
  readSocket(): Promise<unknown>;
}

/** Creates the wire of steps on a connection. @internal */
export function stepWire(nc: NatsConnection): StepWire {
  return {
    fetch: (subject) => fetchWhole(nc, subject, 'request', PERSONA_SERVICE_BOUNDS.requestMaxBytes),
    readSocket: () => confirmed(nc.flush()),
  };
}

/**
 * A pause after which a host may have moved a step, milliseconds. It declares an instance dead after a longer silence (`ttlMs`
 * of SERVED_LIVENESS).
 */
const PAUSE_MS = 1_000;

/** The step of a persona as a tool with the persona's name. @internal */
export function personaStep(
  name: string,
  wire: StepWire,
  models: StepModels<AnswerPart>,
  line: StepLine,
): ServableTool {
  return {
    announced: { name, traits: DEFAULT_TRAITS },
    async check(args) {
      const read = readStrictly(ModelStepArgs, args);
      return read.ok
        ? { args: { step: read.data, takenMs: performance.now() } }
        : { problem: `invalid step request: ${problemSentences(read.problems)[0]}` };
    },
    async run(args, context): Promise<ToolResult> {
      const { step, takenMs } = args as { readonly step: ModelStepArgs; readonly takenMs: number };
      if (!(await line.enter(context.abortSignal))) return returnedStep();
      try {
        const request = await requestOf(wire, step).catch(nullIfUnavailable);
        if (request === null) return returnedStep();
        // If this process was suspended after it had taken the step, the abort waits in its socket.
        if (performance.now() - takenMs > PAUSE_MS) await wire.readSocket();
        if (context.abortSignal.aborted) return returnedStep();
        const parts = new Parts(context.progress);
        const result = await runModelStep(models, asked(request), (part) => parts.report(part), context.abortSignal);
        return { content: [], is_error: false, detail: { step: toStepResult(result) as unknown as JsonObject } };
      } finally {
        line.leave();
      }
    },
  };
}

/** The answer for a step that another instance must run: nothing of it ran here. */
function returnedStep(): ToolResult {
  return { content: [], is_error: true, detail: { handed_back: true } };
}

class Parts {
  readonly #progress: ToolCallContext['progress'];
  #seq = 0;

  constructor(progress: ToolCallContext['progress']) {
    this.#progress = progress;
  }

  report(part: AnswerPart): void {
    if (part.type === 'again') return;
    for (const piece of pieces(part)) this.#progress(JSON.stringify({ seq: this.#seq++, ...piece }));
  }
}

type Piece = StepPart extends infer One ? (One extends StepPart ? Omit<One, 'seq'> : never) : never;

// A message has a size limit. A piece may be cut anywhere except inside a character.
function pieces(part: Exclude<AnswerPart, { type: 'again' }>): Piece[] {
  if (part.type !== 'call') return cut(part.text).map((text) => ({ type: part.type, text }));
  const { callId: call_id, tool, argsText } = part;
  return cut(argsText).map((args_text) => ({ type: 'call', call_id, tool, args_text }));
}

function cut(text: string): string[] {
  const { partMaxChars } = PERSONA_SERVICE_BOUNDS;
  const found: string[] = [];
  let from = 0;
  do {
    const piece = cutText(text.slice(from, from + partMaxChars + 1), partMaxChars);
    found.push(piece);
    from += piece.length;
  } while (from < text.length);
  return found;
}

async function requestOf(wire: Pick<StepWire, 'fetch'>, args: ModelStepArgs): Promise<StepRequest> {
  if ('request' in args) return args.request;
  const { subject } = args.fetch;
  if (!isInboxSubject(subject)) throw new Error('the request must be fetched, and its inbox is invalid');
  return StepRequest.parse(JSON.parse(await wire.fetch(subject)));
}

/** The connection was lost, or its host has ended: another attempt may get the request. */
function nullIfUnavailable(error: unknown): null {
  if (error instanceof NatsUnavailableError) return null;
  throw error;
}

function asked({ idempotency_key, session_id, ...request }: StepRequest): ModelAsked {
  const { turn, model, system, messages, tools, output_schema, answered, compaction } = request;
  return {
    idempotencyKey: idempotency_key,
    sessionId: session_id,
    turn,
    model,
    system,
    messages,
    tools,
    ...(output_schema === undefined ? {} : { outputSchema: output_schema }),
    ...(answered === undefined ? {} : { answered }),
    ...(compaction === undefined ? {} : { compaction }),
  };
}

function toStepResult({ finishReason, ...result }: ModelAnswered): StepResult {
  const { status, message, usage, error, attempts } = result;
  return { status, message, finish_reason: finishReason, usage, attempts, ...(error === undefined ? {} : { error }) };
}
