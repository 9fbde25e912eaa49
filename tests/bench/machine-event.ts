/** The cost of the turn machine: microseconds per event of a plain turn, on a live actor alone, with each runner. */
import type { Input, ToolDefinition } from '@coxswain/protocol';
import { type ChartRunner, SessionActor, selectChartRunner } from '@coxswain/turn';
import type { Part } from './bench-part.ts';
import { median } from './figures.ts';

const WARM_UP_TURNS = 2_000;
const ROUNDS = 7;
const TURNS_PER_ROUND = 1_000;

/** The part of the bench. */
export const machineEvent: Part = {
  name: 'machine-event',
  async measure() {
    const from = `${ROUNDS} rounds`;
    const compiled = await withRunner('compiled', machineEventMicros);
    const plain = await withRunner('xstate', machineEventMicros);
    return {
      figures: [
        { what: 'machine event', value: compiled, unit: 'µs', bar: { atMost: 40 }, from },
        { what: 'machine event, plain XState', value: plain, unit: 'µs', from },
      ],
    };
  },
};

async function withRunner<T>(runner: ChartRunner, measure: () => Promise<T>): Promise<T> {
  const usual = selectChartRunner(runner);
  try {
    return await measure();
  } finally {
    selectChartRunner(usual);
  }
}

/**
 * Microseconds per machine event of a plain turn (an answer that asks for one call, its result), deciding and deriving
 * included: the median of several rounds, each long enough that neither the clock nor one collection of garbage counts.
 */
async function machineEventMicros(): Promise<number> {
  const actor = new SessionActor('bench');
  let n = 0;
  let events = 0;
  const put = (input: Input) => {
    events += actor.step(input, ++n, 0).events.length;
  };
  put({ type: 'command', verb: 'start', command_id: 'start', body: { prompt: 'go' } });
  put({ type: 'provision_outcome', effect_id: '1-0', status: 'ok', provision });
  const turn = () => {
    put(answer(`${n}-0`));
    put(result(`${n}-0`));
  };
  for (let i = 0; i < WARM_UP_TURNS; i++) turn();
  const rounds: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    events = 0;
    const begun = performance.now();
    for (let i = 0; i < TURNS_PER_ROUND; i++) turn();
    rounds.push(((performance.now() - begun) * 1_000) / events);
    // Timers and signals of a longer bench get their turn between rounds, not within one.
    await new Promise(setImmediate);
  }
  return median(rounds);
}

const tool: ToolDefinition = {
  name: 'read_file',
  description: 'Reads a file.',
  input_schema: { type: 'object' },
  source: 'built-in',
  traits: { idempotent: true, long_running: false, sequential: false, terminates: false },
};

const provision: Extract<Input, { type: 'provision_outcome'; status: 'ok' }>['provision'] = {
  persona: { name: 'bench', version: '1' },
  definition: { name: 'bench', prompt: '' },
  model: { name: 'scripted/bench.yaml' },
  system_prompt: 'You measure.',
  tools: [tool],
  hooks: [],
  permissions: { rules: [], default: 'ask' },
  max_turns: 1_000_000,
  parallel_calls: 8,
  drain: { steering: 'all', followups: 'one_at_a_time' },
  daemon: false,
  root: '/',
  fingerprints: { persona: 'a', prompt: 'b', tools: 'c', hooks: 'd' },
};

function answer(effectId: string): Input {
  return {
    type: 'model_outcome',
    effect_id: effectId,
    status: 'complete',
    message: {
      role: 'assistant',
      content: [{ type: 'call', call_id: 'c1', tool: 'read_file', args: { path: 'README.md' } }],
    },
    finish_reason: 'tool-calls',
    usage: { input_tokens: 1_000, output_tokens: 20 },
    body_streamed: true,
    attempts: 1,
    duration_ms: 900,
  };
}

function result(effectId: string): Input {
  return {
    type: 'call_outcome',
    effect_id: effectId,
    call_id: 'c1',
    status: 'ok',
    result: { content: [{ type: 'text', text: 'a line' }], is_error: false },
    duration_ms: 2,
  };
}
