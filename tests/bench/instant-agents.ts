/**
 * Models and tools that take no time: what is left is the runtime's own cost. Their answers are as long as those of the
 * peers that this bench runs beside.
 */
import { setTimeout as sleep } from 'node:timers/promises';
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
import { DEFAULT_TRAITS, fnv1a32, type Message, type ToolDefinition } from '@coxswain/protocol';

/** What stands behind the instant answers. Every member is called at the moment that it names. */
export interface AgentsWatch {
  /** A model was asked. */
  modelAsked(request: ModelRequest): void;
  /** The newest message in front of a model that looks at it. */
  newestSeen(message: Message | undefined): void;
  /** The signal of a running `wait` call aborted. */
  waitAborted(call: ToolCall): void;
  /** A call of a tool that takes its time begins, or the same call once more. */
  pauseBegan(call: ToolCall): void;
}

/** How the outside world is reached for one step. */
export type Step = (payload: string) => Promise<void>;

/** A model's answer, as long as a peer's. */
export const answerText = 'y'.repeat(180);
/** How long a call of `pause` takes, milliseconds: anything from the first to the second, the same for the same call. */
const PAUSE_MS = [1_000, 3_000] as const;
/** A tool's result, as long as a peer's. */
export const resultText = (turn: number) => `result of turn ${turn}: ${'x'.repeat(180)}`;

/**
 * Models by name. `instant/echo` calls the tool `echo` in every turn, `instant/wait` the tool `wait`; `reading/echo`
 * looks at its messages as well, and `bus/echo` goes through `step` first, for itself and for its tool. `instant/say`
 * calls nothing; `instant/pause` calls `pause`, which takes a second or three, and in every other turn `pause_again`, which
 * may run again after a crash.
 */
export function instantModels(watch: AgentsWatch, step: Step): Models {
  const modelOf = (tool: string | readonly string[], before: Step | null, reads = false): Model => ({
    async stream(request): Promise<ModelResult> {
      watch.modelAsked(request);
      if (reads) watch.newestSeen(request.messages.at(-1));
      if (before) await before(answerText);
      const { sessionId, turn } = request;
      const called = typeof tool === 'string' ? tool : tool[turn % tool.length];
      const call = { type: 'call', call_id: `${sessionId}:${turn}`, tool: called ?? '', args: { turn } } as const;
      const text = { type: 'text', text: answerText } as const;
      return {
        status: 'complete',
        message: { role: 'assistant', content: called === undefined ? [text] : [text, call] },
        finishReason: called === undefined ? 'stop' : 'tool-calls',
        usage: { input_tokens: 0, output_tokens: 0 },
        attempts: 1,
      };
    },
  });
  const models: Readonly<Record<string, Model>> = {
    'instant/echo': modelOf('echo', null),
    'instant/wait': modelOf('wait', null),
    'instant/say': modelOf([], null),
    'instant/pause': modelOf(['pause', 'pause_again'], null),
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
  const tools = ['echo', 'wait', 'echo_bus', 'pause', 'pause_again'].map(definition);
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
    traits: { ...DEFAULT_TRAITS, idempotent: name === 'pause_again' },
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
  if (call.tool.startsWith('pause')) {
    watch.pauseBegan(call);
    await sleep(pauseMs(call.idempotencyKey), undefined, { signal }).catch(() => undefined);
  }
  const text = resultText(Number(call.args.turn));
  if (call.tool === 'echo_bus') await step(text);
  return { status: 'ok', result: { content: [{ type: 'text', text }], is_error: false } };
}

function pauseMs(key: string): number {
  return PAUSE_MS[0] + (fnv1a32(key) % (PAUSE_MS[1] - PAUSE_MS[0]));
}
