/**
 * Runs a step of a served persona as a call. It reads or fetches the request, reports pieces as progress, and returns
 * the result.
 */
import { fetchWhole } from '@coxswain/bus';
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

/** Fetches a request that is too long for a message, from an inbox of the host. @returns its JSON text. */
export type FetchRequest = (subject: string) => Promise<string>;

/** Fetches requests over a connection. @internal */
export function fetchRequest(nc: NatsConnection): FetchRequest {
  return (subject) => fetchWhole(nc, subject, 'request', PERSONA_SERVICE_BOUNDS.requestMaxBytes);
}

/** The step of a persona as a tool with the persona's name. @internal */
export function personaStep(
  name: string,
  fetch: FetchRequest,
  models: StepModels<AnswerPart>,
  line: StepLine,
): ServableTool {
  return {
    announced: { name, traits: DEFAULT_TRAITS },
    async check(args) {
      const read = readStrictly(ModelStepArgs, args);
      return read.ok ? { args: read.data } : { problem: `invalid step request: ${problemSentences(read.problems)[0]}` };
    },
    async run(args, context): Promise<ToolResult> {
      if (!(await line.enter(context.abortSignal))) return returnedStep();
      try {
        const request = await requestOf(fetch, args as ModelStepArgs);
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

async function requestOf(fetch: FetchRequest, args: ModelStepArgs): Promise<StepRequest> {
  if ('request' in args) return args.request;
  const { subject } = args.fetch;
  if (!isInboxSubject(subject)) throw new Error('the request must be fetched, and its inbox is invalid');
  return StepRequest.parse(JSON.parse(await fetch(subject)));
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
