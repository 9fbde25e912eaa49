/**
 * Tools with behaviour of the test, and a log of their real effects.
 */
import type {
  ApprovalQuestion,
  Clock,
  ToolCall,
  ToolOutcome,
  ToolProbe,
  ToolSource,
  Toolset,
  ToolsetSpec,
} from '@coxswain/ports';
import {
  DEFAULT_TRAITS,
  type Failure,
  type JsonObject,
  type ToolDefinition,
  type ToolTraits,
} from '@coxswain/protocol';

/** One tool. */
export interface FakeTool {
  readonly traits?: Partial<ToolTraits>;
  readonly schema?: JsonObject;
  /** Its function; by default the result is `ok`. */
  readonly run?: (call: ToolCall, signal: AbortSignal, clock: Clock) => Promise<ToolOutcome>;
  /** The answer of a worker that outlives its host. */
  readonly probe?: (idempotencyKey: string) => ToolProbe;
  /** Whether a call needs an approval: always, or by its answer. */
  readonly needsApproval?: true | ((question: ApprovalQuestion) => boolean | Promise<boolean>);
  /** Receives the stop of an accepted call; absent if it cannot be stopped. */
  readonly stop?: (idempotencyKey: string, reason: string) => void;
}

/** One run of a tool. */
export interface ToolRun {
  readonly key: string;
  readonly callId: string;
  readonly tool: string;
  readonly args: JsonObject;
  readonly epoch: number;
  ended: boolean;
  readonly aborted: boolean;
}

/** A result with one text. */
export const answer = (text: string, status: 'ok' | 'error' = 'ok'): ToolOutcome => ({
  status,
  result: { content: [{ type: 'text', text }], is_error: status !== 'ok' },
});

/** A slow tool that stops after an abort. */
export const taking =
  (ms: number, text = 'slow result'): NonNullable<FakeTool['run']> =>
  async (_call, signal, clock) => {
    await clock.sleep(ms, signal);
    return signal.aborted ? { ...answer('stopped', 'error'), status: 'cancelled' } : answer(text);
  };

/** A slow tool that ignores aborts. */
export const deaf =
  (ms: number, text = 'late result'): NonNullable<FakeTool['run']> =>
  async (_call, _signal, clock) => {
    await clock.sleep(ms);
    return answer(text);
  };

/** The tools of one test. */
export class FakeTools implements ToolSource {
  /** The runs in order of their start. */
  readonly runs: ToolRun[] = [];
  readonly specs: ToolsetSpec[] = [];
  /** Number of open toolsets. */
  openNow = 0;
  failure: Failure | null = null;
  /** Time to open. */
  openMs = 0;
  /** Time to close. */
  closeMs = 0;
  readonly #clock: Clock;
  readonly #tools: () => Readonly<Record<string, FakeTool>>;

  constructor(clock: Clock, tools: () => Readonly<Record<string, FakeTool>>) {
    this.#clock = clock;
    this.#tools = tools;
  }

  async open(spec: ToolsetSpec): Promise<Toolset | Failure> {
    this.specs.push(spec);
    if (this.openMs > 0) await this.#clock.sleep(this.openMs);
    if (this.failure) return this.failure;
    this.openNow++;
    const tools = this.#tools();
    return {
      tools: Object.entries(tools).map(([name, tool]) => definition(name, tool)),
      call: (call, signal) => this.#call(tools, call, signal),
      needsApproval: async (question) => {
        const needed = tools[question.tool]?.needsApproval;
        return typeof needed === 'function' ? needed(question) : true;
      },
      probe: async (key, name) => tools[name]?.probe?.(key) ?? { state: 'unknown' },
      stop: async (key, name, reason) => {
        tools[name]?.stop?.(key, reason);
        return tools[name]?.stop !== undefined;
      },
      close: async () => {
        if (this.closeMs > 0) await this.#clock.sleep(this.closeMs);
        this.openNow--;
        return [];
      },
    };
  }

  async #call(tools: Readonly<Record<string, FakeTool>>, call: ToolCall, signal: AbortSignal): Promise<ToolOutcome> {
    const { idempotencyKey: key, callId, tool, args, epoch } = call;
    const run: ToolRun = {
      key,
      callId,
      tool,
      args,
      epoch,
      ended: false,
      get aborted() {
        return signal.aborted;
      },
    };
    this.runs.push(run);
    const outcome = (await tools[tool]?.run?.(call, signal, this.#clock)) ?? answer(`${tool} ran`);
    run.ended = true;
    return outcome;
  }
}

/** A tool definition for the model. */
export function definition(name: string, tool: FakeTool = {}): ToolDefinition {
  return {
    name,
    description: `The tool ${name}.`,
    input_schema: tool.schema ?? { type: 'object' },
    source: 'test',
    traits: { ...DEFAULT_TRAITS, ...tool.traits },
    ...(tool.needsApproval ? { needs_approval: tool.needsApproval === true ? 'always' : 'by_call' } : {}),
  };
}
