/**
 * Asks the session's model for an answer: publishes deltas, checks the calls and the output by their schemas, returns one
 * outcome. Which component repeats a failed request: the header of model-answers.ts in libs/turn.
 */
import { runModelStep } from '@coxswain/handlers';
import type { Clock, ModelPart, ModelRequest, Models, Publisher } from '@coxswain/ports';
import {
  type AnswerSoFar,
  type AssistantMessage,
  BOUNDS,
  type CallPart,
  type Delta,
  type ModelOutcome,
  PieceJoiner,
  type SessionRef,
  type ToolDefinition,
  textOf,
} from '@coxswain/protocol';
import { checkOutput } from '@coxswain/protocol/check-output';
import { argumentsProblem } from '@coxswain/protocol/validate-arguments';
import { elapsedMs } from '../trace/measure-work.ts';
import { inlineBytes, inlineMaxBytes } from './record-share.ts';

/** One request to a model. */
export interface ModelAsk {
  readonly ref: SessionRef;
  readonly effectId: string;
  readonly epoch: number;
  readonly request: ModelRequest;
  /** Collects the published deltas, for readers that join during the answer. */
  readonly answer: AnswerSoFar;
}

/**
 * Asks for one answer. Never rejects; every end is an outcome. The output is checked only in a complete answer without
 * calls, if the request has an output schema.
 */
export async function streamAnswer(
  models: Models,
  publisher: Publisher,
  clock: Clock,
  ask: ModelAsk,
  signal: AbortSignal,
): Promise<ModelOutcome> {
  const { ref, effectId, epoch, request, answer } = ask;
  const startedMs = clock.monotonicMs();
  let attempt = 1;
  let index = 0;
  const offsets = { text: 0, reasoning: 0 };
  let streamed = false;
  let pieces = { text: new PieceJoiner(), reasoning: new PieceJoiner() };
  const publish = (part: Exclude<ModelPart, { type: 'again' }>) => {
    const head = { session_id: ref.sessionId, effect_id: effectId, epoch, attempt, turn: request.turn, index: index++ };
    const delta = deltaOf(part, { ...head, offset: part.type === 'call' ? 0 : offsets[part.type] });
    if (part.type !== 'call') offsets[part.type] += part.text.length;
    publisher.delta(ref, delta);
    answer.take(delta);
  };
  const onPart = (part: ModelPart) => {
    if (part.type === 'again') {
      // Readers discard the text of the previous attempt.
      attempt++;
      index = offsets.text = offsets.reasoning = 0;
      streamed = false;
      pieces = { text: new PieceJoiner(), reasoning: new PieceJoiner() };
      return;
    }
    streamed ||= part.type === 'text';
    if (part.type === 'call') return publish({ ...part, argsText: part.argsText.toWellFormed() });
    const text = pieces[part.type].take(part.text);
    if (text !== '') publish({ ...part, text });
  };
  const result = await runModelStep(models, request, onPart, signal);
  for (const type of ['reasoning', 'text'] as const) {
    const text = pieces[type].end();
    if (text !== '') publish({ type, text });
  }
  const schema = result.status === 'complete' && !result.message.partial ? request.outputSchema : undefined;
  const output = schema && !hasCalls(result.message) ? checkOutput(schema, textOf(result.message)) : undefined;
  return {
    type: 'model_outcome',
    effect_id: effectId,
    status: result.status,
    message: { ...result.message, content: checkedCalls(result.message.content, request.tools) },
    finish_reason: result.finishReason,
    usage: result.usage,
    body_streamed: streamed,
    ...(result.error ? { error: result.error } : {}),
    attempts: result.attempts,
    duration_ms: elapsedMs(clock, startedMs),
    ...(output ? { output } : {}),
  };
}

function hasCalls({ content }: AssistantMessage): boolean {
  return content.some(({ type }) => type === 'call');
}

function deltaOf(part: Exclude<ModelPart, { type: 'again' }>, head: Omit<Delta, 'type' | 'kind' | 'text'>): Delta {
  if (part.type === 'call')
    return {
      type: 'message_update',
      ...head,
      kind: 'call',
      text: part.argsText,
      call_id: part.callId,
      tool: part.tool,
    };
  return { type: 'message_update', ...head, kind: part.type, text: part.text };
}

// A call that can never run is marked here, so that the machine can refuse it without schemas.
function checkedCalls<P extends { readonly type: string }>(
  content: readonly P[],
  tools: readonly ToolDefinition[],
): P[] {
  let calls = 0;
  let argsBytes = 0;
  let room = inlineMaxBytes(ARGS_COPIES);
  return content.map((part) => {
    if (part.type !== 'call') return part;
    const call = part as unknown as CallPart;
    calls++;
    const bytes = Buffer.byteLength(JSON.stringify(call.args) ?? '', 'utf8');
    // The session's state holds the arguments of a batch; a model without limits must not fill it.
    if (argsBytes + bytes > BOUNDS.batchArgsMaxBytes) return { ...part, args: {}, problem: tooLarge(bytes) };
    // Numbers, keys and short texts cannot become blobs, and the record must hold them several times.
    const inline = inlineBytes(call.args);
    if (inline > room) return { ...part, args: {}, problem: tooManyParts(inline) };
    argsBytes += bytes;
    room -= inline;
    const problem = call.problem ?? problemOf(call, calls, tools);
    return problem ? { ...part, problem } : part;
  });
}

/** Copies of arguments in one record: the input, `message_complete`, and the start of a call or a question to a hook. */
const ARGS_COPIES = 3;

function tooManyParts(bytes: number): CallPart['problem'] {
  return {
    code: 'arguments_too_large',
    message: `The arguments have ${bytes} bytes without their long texts. All tool calls of one response may have at most ${inlineMaxBytes(ARGS_COPIES)} such bytes. Split the work.`,
  };
}

function tooLarge(bytes: number): CallPart['problem'] {
  return {
    code: 'arguments_too_large',
    message: `The arguments have ${bytes} bytes. All tool calls of one response may have at most ${BOUNDS.batchArgsMaxBytes} bytes. Split the work.`,
  };
}

function problemOf(call: CallPart, position: number, tools: readonly ToolDefinition[]): CallPart['problem'] {
  if (position > BOUNDS.callsPerBatchMax) {
    return {
      code: 'too_many_calls',
      message: `A response may have at most ${BOUNDS.callsPerBatchMax} tool calls; this is call ${position}.`,
    };
  }
  const tool = tools.find((candidate) => candidate.name === call.tool);
  if (!tool) {
    const names = tools.slice(0, 32).map((candidate) => candidate.name);
    return {
      code: 'unknown_tool',
      message: `There is no tool ${call.tool}. Available tools: ${names.join(', ') || 'none'}.`,
    };
  }
  const problem = argumentsProblem(tool, call.args);
  return problem === null ? undefined : { code: 'invalid_call_arguments', message: problem };
}
