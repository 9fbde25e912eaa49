/** A model that plays a script. */
import type { Clock, Model, ModelPart, ModelResult } from '@coxswain/ports';
import type { AssistantMessage, Failure, ProviderMetadata, Usage } from '@coxswain/protocol';
import { checkArguments, readArguments } from '../call-arguments.ts';
import { type Marker, writeMarker } from './marker.ts';
import { nextTurn } from './next-turn.ts';
import type { FaultKind, Script, ScriptedTurn, Scripts } from './script.ts';
import { type Timeline, timelineOf } from './timeline.ts';

const NO_USAGE: Usage = { input_tokens: 0, output_tokens: 0 };

/** Creates the model of one script. `path` is the path of the file, `file` its name in the model's name. */
export function scriptedModel(scripts: Scripts, path: string, file: string, clock: Clock): Model {
  return {
    async stream(request, onPart, signal) {
      const script = scripts.kept(path) ?? (await scripts.load(path, file));
      if ('code' in script) return failed([], NO_USAGE, script);
      const { compaction } = request;
      if (compaction !== undefined) {
        const turn = script.compactions[compaction - 1];
        if (!turn) return failed([], NO_USAGE, compactionsExhausted(script, compaction));
        const marker = { file, turn: compaction - 1, answer: request.answered?.count ?? 0 };
        return play(script, turn, marker, 'compactions', onPart, signal, clock);
      }
      const marker = nextTurn(script, request);
      if ('code' in marker) return failed([], NO_USAGE, marker);
      return play(script, script.turns[marker.turn] as ScriptedTurn, marker, 'turns', onPart, signal, clock);
    },
  };
}

type Content = AssistantMessage['content'];

async function play(
  script: Script,
  turn: ScriptedTurn,
  marker: Marker,
  list: 'turns' | 'compactions',
  onPart: (part: ModelPart) => void,
  signal: AbortSignal,
  clock: Clock,
): Promise<ModelResult> {
  const timeline = timelineOf(turn);
  const usage: Usage = turn.usage ?? NO_USAGE;
  const said = new PlayedParts(marker);
  let nowMs = 0;
  const waitUntil = async (atMs: number): Promise<void> => {
    const delayMs = atMs - nowMs;
    nowMs = atMs;
    if (delayMs > 0) await clock.sleep(delayMs, signal);
  };

  for (const piece of timeline.pieces) {
    if (piece.atMs > nowMs) await waitUntil(piece.atMs);
    if (signal.aborted) return cancelled(said.content(), usage);
    said.add(piece.type, piece.text);
    onPart({ type: piece.type, text: piece.text });
  }
  await waitUntil(endOf(timeline));
  if (signal.aborted) return cancelled(said.content(), usage);
  if (timeline.fault) {
    const where = `${list}[${marker.turn}].fail of script ${script.file}`;
    return failed(said.content(), usage, faultOf(timeline.fault.kind, said.hasParts, where));
  }

  const calls = turn.calls ?? [];
  for (const [index, call] of calls.entries()) {
    const callId = `c${marker.answer}_${index + 1}`;
    const asText = typeof call.args === 'string';
    const read = asText ? readArguments(call.args as string) : checkArguments(call.args);
    said.addCall({ type: 'call', call_id: callId, tool: call.tool, ...read });
    onPart({
      type: 'call',
      callId,
      tool: call.tool,
      argsText: asText ? (call.args as string) : JSON.stringify(call.args),
    });
  }
  return {
    status: 'complete',
    message: { role: 'assistant', content: said.content() },
    finishReason: calls.length > 0 ? 'tool-calls' : 'stop',
    usage,
    attempts: 1,
  };
}

function endOf(timeline: Timeline): number {
  return timeline.fault?.atMs ?? timeline.endMs ?? 0;
}

// The parts so far. The first part has the marker. Without parts, an empty text has it, so that a failed or cancelled
// turn counts as used.
class PlayedParts {
  readonly #metadata: ProviderMetadata;
  readonly #parts: Content = [];

  constructor(marker: Marker) {
    this.#metadata = writeMarker(marker);
  }

  get hasParts(): boolean {
    return this.#parts.length > 0;
  }

  add(type: 'text' | 'reasoning', text: string): void {
    const last = this.#parts.at(-1);
    if (last?.type === type) last.text += text;
    else this.#parts.push({ type, text, ...this.#mark() });
  }

  addCall(call: Extract<Content[number], { type: 'call' }>): void {
    this.#parts.push({ ...call, ...this.#mark() });
  }

  content(): Content {
    return this.#parts.length > 0 ? this.#parts : [{ type: 'text', text: '', ...this.#mark() }];
  }

  #mark(): { provider_metadata?: ProviderMetadata } {
    return this.#parts.length === 0 ? { provider_metadata: this.#metadata } : {};
  }
}

function failed(content: Content, usage: Usage, error: Failure): ModelResult {
  return {
    status: 'failed',
    message: { role: 'assistant', content, partial: true },
    finishReason: 'error',
    usage,
    error,
    attempts: 1,
  };
}

function cancelled(content: Content, usage: Usage): ModelResult {
  return {
    status: 'cancelled',
    message: { role: 'assistant', content, partial: true },
    finishReason: 'cancelled',
    usage,
    attempts: 1,
  };
}

function compactionsExhausted(script: Script, asked: number): Failure {
  const { length } = script.compactions;
  return {
    code: 'script_exhausted',
    message: `script ${script.file} has ${length} answer${length === 1 ? '' : 's'} to compactions, and this is number ${asked}`,
    retryable: false,
  };
}

function faultOf(kind: FaultKind, saidAnything: boolean, where: string): Failure {
  const [code, what, retryable] = FAULTS[kind];
  return {
    code: kind === 'network' && saidAnything ? 'model_stream_broken' : code,
    message: `${what} (${where})`,
    retryable,
  };
}

const FAULTS: Readonly<Record<FaultKind, readonly [code: string, what: string, retryable: boolean]>> = {
  rate_limit: ['model_rate_limited', 'the provider answered 429', true],
  server_error: ['model_unavailable', 'the provider answered 503', true],
  network: ['model_unavailable', 'the connection was cut', true],
  garbage: ['model_stream_broken', 'the stream held a frame that is not JSON', true],
  no_final_frame: ['model_stream_broken', 'the stream ended without a final frame', true],
  timeout: ['model_timeout', 'the provider sent nothing for too long', true],
  error: ['model_request_failed', 'the provider answered 400', false],
  context_overflow: ['context_overflow', 'the provider refused the prompt as too long', false],
};
