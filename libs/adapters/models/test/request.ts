/** Requests as a session makes them. */
import type { ModelPart, ModelRequest, ModelResult, Models } from '@coxswain/ports';
import {
  AssistantMessage,
  DEFAULT_TRAITS,
  type Message,
  type ModelSettings,
  type ToolDefinition,
  Usage,
} from '@coxswain/protocol';
import { expect } from 'vitest';

export const TOOLS: ToolDefinition[] = ['read_file', 'list_files'].map((name) => ({
  name,
  description: `${name} does what its name says`,
  input_schema: { type: 'object', properties: { path: { type: 'string' } } },
  source: 'test',
  traits: DEFAULT_TRAITS,
}));

export interface Asked {
  readonly result: ModelResult;
  readonly parts: ModelPart[];
}

export interface AskOptions {
  readonly signal?: AbortSignal;
  readonly onPart?: (part: ModelPart) => void;
  readonly system?: string;
  readonly tools?: ToolDefinition[];
  readonly effect?: string;
  readonly turn?: number;
  readonly answered?: ModelRequest['answered'];
  readonly compaction?: number;
  readonly outputSchema?: ModelRequest['outputSchema'];
}

/** Asks a model, and holds its result to the port's contract. */
export async function ask(
  models: Models,
  model: ModelSettings,
  messages: Message[],
  options: AskOptions = {},
): Promise<Asked> {
  const request: ModelRequest = {
    idempotencyKey: `default.s1.${options.effect ?? '7-0'}`,
    sessionId: 's1',
    turn: options.turn ?? 1,
    model,
    system: options.system ?? '',
    messages,
    tools: options.tools ?? [],
    ...(options.answered ? { answered: options.answered } : {}),
    ...(options.outputSchema ? { outputSchema: options.outputSchema } : {}),
    ...(options.compaction === undefined ? {} : { compaction: options.compaction }),
  };
  const parts: ModelPart[] = [];
  let settled = false;
  const result = await models.resolve(model).stream(
    request,
    (part) => {
      expect(settled).toBe(false);
      parts.push(part);
      options.onPart?.(part);
    },
    options.signal ?? new AbortController().signal,
  );
  settled = true;
  expect(AssistantMessage.safeParse(result.message).error).toBeUndefined();
  expect(Usage.safeParse(result.usage).error).toBeUndefined();
  expect(result.message.partial).toBe(result.status === 'complete' ? undefined : true);
  expect(result.error !== undefined).toBe(result.status === 'failed');
  return { result, parts };
}

export function textOfParts(parts: readonly ModelPart[]): string {
  return parts.map((part) => (part.type === 'text' ? part.text : '')).join('');
}
