import type {
  LanguageModelV3StreamPart,
  LanguageModelV3ToolCall,
  LanguageModelV3Usage,
  SharedV3ProviderMetadata,
} from '@ai-sdk/provider';
import type { ModelPart } from '@coxswain/ports';
import {
  type AssistantMessage,
  type CallPart,
  cutText,
  type JsonObject,
  type ProviderMetadata,
  type ReasoningPart,
  type TextPart,
  type Usage,
} from '@coxswain/protocol';
import { argumentsCutOff, readArguments } from '../call-arguments.ts';
import type { CallIds } from './call-ids.ts';
import { reportedUsage, usageOf } from './reported-usage.ts';
import { BrokenStreamError, ReportedError } from './stream-failure.ts';

type Said = TextPart | ReasoningPart;
type Content = AssistantMessage['content'];
type Finish = Extract<LanguageModelV3StreamPart, { type: 'finish' }>;

/** Finish reasons of an answer that its model has finished. With any other reason its last call may be incomplete. */
const FINISHED: readonly string[] = ['stop', 'tool-calls'];

// No model writes that much, but a faulty server might.
const ANSWER_MAX_CHARS = 16 * 1024 * 1024;

/** One streaming answer. Converts a provider's stream parts to the stored message, and to the deltas for watchers. */
export class Answer {
  readonly #onPart: (part: ModelPart) => void;
  readonly #callIds: CallIds;
  readonly #parts: Content = [];
  /** Calls without any text for their arguments. */
  readonly #withoutText = new Set<CallPart>();
  /** Open text and reasoning parts, by kind and the provider's id. */
  readonly #open = new Map<string, Said>();
  #finish: Finish | null = null;
  #usage: Usage | null = null;
  #chars = 0;
  #hasPublished = false;

  constructor(onPart: (part: ModelPart) => void, callIds: CallIds) {
    this.#onPart = onPart;
    this.#callIds = callIds;
  }

  /** Whether a part was published, so that a repeated request would be visible. */
  get hasPublished(): boolean {
    return this.#hasPublished;
  }

  /** Whether the final frame has arrived. */
  get complete(): boolean {
    return this.#finish !== null;
  }

  /**
   * Adds the next part of the stream.
   * @throws ReportedError if the provider reports an error; BrokenStreamError if the answer is invalid.
   */
  take(part: LanguageModelV3StreamPart): void {
    switch (part.type) {
      case 'text-start':
      case 'reasoning-start':
        this.#start(kindOf(part.type), part.id, part.providerMetadata);
        break;
      case 'text-delta':
      case 'reasoning-delta':
        this.#add(kindOf(part.type), part.id, part.delta, part.providerMetadata);
        break;
      case 'text-end':
      case 'reasoning-end':
        this.#end(kindOf(part.type), part.id, part.providerMetadata);
        break;
      case 'tool-call':
        this.#takeCall(part);
        break;
      case 'error':
        throw new ReportedError(part.error);
      case 'raw':
        this.#usage = reportedUsage(this.#usage, part.rawValue);
        break;
      case 'finish':
        this.#takeFinish(part);
        break;
      default:
        // Input deltas are repeated in the complete call. Sources, files and calls that the provider runs are not
        // stored.
        break;
    }
  }

  /** The finish reason, in the terms of the provider specification: `stop`, `length`, `tool-calls`, … */
  get finishReason(): string {
    return this.#finish?.finishReason.unified ?? 'other';
  }

  /** The tokens of the final frame; for an answer that broke off, those that were reported before. */
  get usage(): Usage {
    return this.#usage ?? { input_tokens: 0, output_tokens: 0 };
  }

  /** The whole answer. Empty text is left out. Reasoning with metadata stays, because its provider needs it back. */
  get content(): Content {
    return this.#parts.flatMap((part): Content => {
      if (part.type === 'call')
        return [this.#isCutOff(part) ? { ...part, ...argumentsCutOff(this.finishReason) } : part];
      return part.text !== '' || (part.type === 'reasoning' && part.provider_metadata) ? [part] : [];
    });
  }

  // Adapters convert missing arguments to {}, so that an empty object counts only if another part follows the call.
  #isCutOff(call: CallPart): boolean {
    if (this.#finish === null || FINISHED.includes(this.finishReason)) return false;
    if (this.#withoutText.has(call)) return true;
    return call === this.#parts.at(-1) && call.args !== null && Object.keys(call.args).length === 0;
  }

  /**
   * The text of an answer that was cut short. Its calls are incomplete and its signatures invalid, so both are left
   * out.
   */
  get partialContent(): Content {
    return this.#parts.flatMap((part) =>
      part.type !== 'call' && part.text !== '' ? [{ type: part.type, text: part.text }] : [],
    );
  }

  #start(type: Said['type'], id: string, metadata?: SharedV3ProviderMetadata): Said {
    const part: Said = { type, text: '' };
    addMetadata(part, metadata);
    this.#open.set(`${type} ${id}`, part);
    this.#parts.push(part);
    return part;
  }

  #add(type: Said['type'], id: string, delta: string, metadata?: SharedV3ProviderMetadata): void {
    const part = this.#open.get(`${type} ${id}`) ?? this.#start(type, id);
    addMetadata(part, metadata);
    if (delta === '') return;
    this.#count(delta.length);
    part.text += delta;
    this.#handOn({ type, text: delta });
  }

  // The compatible adapter reuses the id for the next piece of text, so an ended part is removed.
  #end(type: Said['type'], id: string, metadata?: SharedV3ProviderMetadata): void {
    const part = this.#open.get(`${type} ${id}`);
    if (part) addMetadata(part, metadata);
    this.#open.delete(`${type} ${id}`);
  }

  #takeCall(part: LanguageModelV3ToolCall): void {
    // The provider runs this call and uses the result in its own answer. It is not a call of the session.
    if (part.providerExecuted) return;
    this.#count(part.input.length);
    const tool = cutText(part.toolName, 256) || 'unnamed';
    const call: CallPart = {
      type: 'call',
      call_id: this.#callIds.unique(part.toolCallId),
      tool,
      ...readArguments(part.input),
    };
    addMetadata(call, part.providerMetadata);
    if (part.input.trim() === '') this.#withoutText.add(call);
    this.#parts.push(call);
    this.#handOn({ type: 'call', callId: call.call_id, tool, argsText: part.input });
  }

  #takeFinish(part: Finish): void {
    const { unified, raw } = part.finishReason;
    // The adapters end every stream with a finish. Without a reason, the provider's final frame has not arrived.
    if (unified === 'other' && raw === undefined) throw new BrokenStreamError('it ended without a final frame');
    if (unified === 'error') throw new BrokenStreamError(`it ended with ${raw ?? 'an error'}`);
    this.#finish = part;
    this.#usage = usageOfFinish(part.usage);
  }

  #count(chars: number): void {
    this.#chars += chars;
    if (this.#chars > ANSWER_MAX_CHARS) throw new BrokenStreamError(`it is over ${ANSWER_MAX_CHARS} characters long`);
  }

  #handOn(part: ModelPart): void {
    this.#hasPublished = true;
    this.#onPart(part);
  }
}

function kindOf(type: `${Said['type']}-${string}`): Said['type'] {
  return type.startsWith('text') ? 'text' : 'reasoning';
}

function addMetadata(
  part: { provider_metadata?: ProviderMetadata | undefined },
  metadata?: SharedV3ProviderMetadata,
): void {
  for (const [provider, values] of Object.entries(metadata ?? {})) {
    // Adapters set members to undefined, which journals cannot represent.
    const clean = JSON.parse(JSON.stringify(values)) as JsonObject;
    if (Object.keys(clean).length === 0) continue;
    part.provider_metadata = {
      ...part.provider_metadata,
      [provider]: { ...part.provider_metadata?.[provider], ...clean },
    };
  }
}

function usageOfFinish({ inputTokens, outputTokens }: LanguageModelV3Usage): Usage {
  return usageOf({
    input: inputTokens.total,
    output: outputTokens.total,
    cached: inputTokens.cacheRead,
    reasoning: outputTokens.reasoning,
  });
}
