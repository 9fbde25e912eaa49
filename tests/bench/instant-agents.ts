/**
 * Models and tools that take no time: what is left is the runtime's own cost. Their answers are as long as those of the
 * peers that this bench runs beside.
 */
import type {
  Model,
  ModelRequest,
  ModelResult,
  Models,
  ToolCall,
  ToolOutcome,
  ToolSource,
  Toolset,
} from '@coxswain/ports';
import { DEFAULT_TRAITS, type Message, type ToolDefinition } from '@coxswain/protocol';

/** What stands behind the instant answers. Every member is called at the moment that it names. */
export interface AgentsWatch {
  /** A model was asked. */
  modelAsked(request: ModelRequest): void;
  /** The newest message in front of a model that looks at it. */
  newestSeen(message: Message | undefined): void;
  /** The signal of a running `wait` call aborted. */
  waitAborted(call: ToolCall): void;
}

/** How the outside world is reached for one step. */
export type Step = (payload: string) => Promise<void>;

/** A model's answer, as long as a peer's. */
export const answerText = 'y'.repeat(180);
/** A tool's result, as long as a peer's. */
export const resultText = (turn: number) => `result of turn ${turn}: ${'x'.repeat(180)}`;

/**
 * Models by name. `instant/echo` calls the tool `echo` in every turn, `instant/wait` the tool `wait`; `reading/echo`
 * looks at its messages as well, and `bus/echo` goes through `step` first, for itself and for its tool.
 */
export function instantModels(watch: AgentsWatch, step: Step): Models {
  const modelOf = (tool: string, before: Step | null, reads = false): Model => ({
    async stream(request): Promise<ModelResult> {
      watch.modelAsked(request);
      if (reads) watch.newestSeen(request.messages.at(-1));
      if (before) await before(answerText);
      return {
        status: 'complete',
        message: {
          role: 'assistant',
          content: [
            { type: 'text', text: answerText },
            {
              type: 'call',
              call_id: `${request.sessionId}:${request.turn}`,
              tool,
              args: { turn: request.turn },
            },
          ],
        },
        finishReason: 'tool-calls',
        usage: { input_tokens: 0, output_tokens: 0 },
        attempts: 1,
      };
    },
  });
  const models: Readonly<Record<string, Model>> = {
    'instant/echo': modelOf('echo', null),
    'instant/wait': modelOf('wait', null),
    'reading/echo': modelOf('echo', null, true),
    'bus/echo': modelOf('echo_bus', step),
  };
  return {
    check: async ({ name }) =>
      models[name] ? null : { code: 'model_not_found', message: `the bench has no model ${name}` },
    resolve({ name }) {
      const model = models[name];
      if (!model) throw new Error(`the bench has no model ${name}`);
      return model;
    },
  };
}

/** The tools that go with {@link instantModels}. */
export function instantTools(watch: AgentsWatch, step: Step): ToolSource {
  const tools = ['echo', 'wait', 'echo_bus'].map(definition);
  return {
    async open(): Promise<Toolset> {
      return {
        tools,
        call: (call, signal) => run(call, signal, watch, step),
        probe: async () => ({ state: 'unknown' }),
        close: async () => [],
      };
    },
  };
}

function definition(name: string): ToolDefinition {
  return {
    name,
    description: 'A tool of the bench.',
    input_schema: { type: 'object', properties: { turn: { type: 'integer' } }, required: ['turn'] },
    source: 'bench',
    traits: DEFAULT_TRAITS,
  };
}

async function run(call: ToolCall, signal: AbortSignal, watch: AgentsWatch, step: Step): Promise<ToolOutcome> {
  if (call.tool === 'wait') {
    await new Promise<void>((resolve) => {
      if (signal.aborted) return resolve();
      signal.addEventListener('abort', () => resolve(), { once: true });
    });
    watch.waitAborted(call);
    return { status: 'cancelled', result: { content: [{ type: 'text', text: 'stopped' }], is_error: true } };
  }
  const text = resultText(Number(call.args.turn));
  if (call.tool === 'echo_bus') await step(text);
  return { status: 'ok', result: { content: [{ type: 'text', text }], is_error: false } };
}
