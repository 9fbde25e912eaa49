/**
 * What each kind of return does to a session, at every point that sessions fire, on a running host. The protocol's own
 * test holds what every return means at every point; its table is the oracle here.
 */
import { createMemoryPersonas } from '@coxswain/adapter-memory';
import { combineToolSources, createCrewTools } from '@coxswain/adapter-tools';
import {
  HOOK_POINTS,
  type HookPoint,
  type HookRegistration,
  type JsonObject,
  TenantId,
  textOf,
} from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
import { expected, ROWS, type Row, reminding } from '../../protocol/test/return-table.ts';
import { type Handler, hook, returns } from './fake-hooks.ts';
import { type Answer, ask, call, say } from './fake-model.ts';
import { answer } from './fake-tools.ts';
import { type TestBed, testBed } from './test-bed.ts';

/** How a session comes to a point, and how to see what a return has done there. */
interface Stage {
  readonly answers?: readonly Answer[];
  readonly settings?: JsonObject;
  /** Its persona, mate, is paused when it starts, and resumed after it was played. */
  readonly paused?: boolean;
  readonly play?: (bed: TestBed) => Promise<void>;
  /** What has become of what was asked about, in a word. */
  readonly outcome: (bed: TestBed) => Promise<string> | string;
  /** The word where nobody objects, where the operation is refused, and where an answer says something else. */
  readonly goesOn: string;
  readonly refused: string;
  readonly means?: Readonly<Record<string, string | ((answer: JsonObject) => string)>>;
  /** Returns that only this point tells apart, beside those of the protocol. */
  readonly rows?: Readonly<Record<string, Row>>;
}

const end = async (bed: TestBed) => String((await bed.eventsOf('agent_end')).at(-1)?.stop_reason);
const told = (more: Partial<Stage> = {}): Stage => ({
  outcome: end,
  goesOn: 'end_turn',
  refused: 'end_turn',
  ...more,
});
const reads = [ask(call('c1', 'read')), say('done')];
const ran = async (bed: TestBed) => {
  const [run] = bed.toolSource.runs;
  const parked = (await bed.eventsOf('approval_requested')).length > 0;
  return run ? `ran ${JSON.stringify(run.args)}` : parked ? 'parked' : 'denied';
};
const asking: JsonObject = { permissions: { rules: [{ tool: '*', action: 'ask' }] } };
const mate = (more: object): JsonObject => ({ persona: { name: 'mate', ...more } }) as JsonObject;
const of = (tokens: number) => ({ usage: { input_tokens: tokens, output_tokens: 0 } });
const compacting: Partial<Stage> = {
  answers: [{ ...ask(call('c1', 'read')), ...of(900) }, say('done', of(100))],
  settings: mate({
    model: { name: 'fake/model', context_window: 1_000 },
    compaction: { reserve: 200, keep_turns: 0 },
  }),
};
const suspending = async (bed: TestBed) => {
  await bed.send('suspend');
  await bed.time.advance(20);
};
const ownRow = (raw: unknown, means: string, point: HookPoint, reminders = 0): Row => ({
  raw,
  means,
  where: [point],
  elsewhere: 'verdict_not_allowed',
  reminders,
});
const stepping: Partial<Stage> = {
  answers: [say('a plan'), say('done')],
  settings: mate({
    steps: [
      { name: 'plan', prompt: 'Do plan.' },
      { name: 'write', prompt: 'Do write.' },
    ],
  }),
};
/** How the first step and the run have ended, and what the model was told to do. */
const stepped = async (bed: TestBed) => {
  const [first] = await bed.eventsOf('step_finished');
  const output = first?.output === undefined ? '' : ` as ${JSON.stringify(first.output)}`;
  const said = (bed.models.requests.at(-1)?.messages ?? []).map(textOf).filter((text) => text.startsWith('Step '));
  const asked = said.map((text) => text.split('\n\n').slice(1).join(' '));
  return [`${first?.error?.code ?? first?.status}${output}`, await end(bed), ...asked].join(', ');
};
/** What has become of a call that waits for a person. */
const waited = async (bed: TestBed) => {
  const [asked] = await bed.eventsOf('approval_requested');
  const [decided] = await bed.eventsOf('approval_decided');
  const [ended] = await bed.eventsOf('call_ended');
  const ran = bed.toolSource.runs.length > 0 ? 'ran' : 'not run';
  if (!asked) return 'not asked';
  if (!decided) return ended ? `${ended.status} by nobody` : `parked, ${ran}`;
  const { decision, hook = 'a person', reason = 'no reason' } = decided;
  return `${decision} by ${hook} for ${reason}, ${ended?.status}, ${ran}`;
};

const STAGES: { readonly [P in HookPoint]?: Stage } = {
  session_start: told(),
  user_prompt_submit: told({
    refused: 'user_prompt_submit_blocked',
    means: { block: 'user_prompt_submit_blocked' },
  }),
  pre_compact: {
    ...told(compacting),
    outcome: async (bed) => ((await bed.eventsOf('compaction_done')).length > 0 ? 'compacted' : 'not'),
    goesOn: 'compacted',
    refused: 'not',
    means: { block: 'not' },
  },
  post_compact: told(compacting),
  transform_context: {
    outcome: async (bed) => bed.models.requests.at(-1)?.messages.map(textOf)[0] ?? (await end(bed)),
    goesOn: 'hello',
    refused: 'error',
    means: { replace_messages: 't' },
  },
  PreToolUse: {
    answers: reads,
    outcome: ran,
    goesOn: 'ran {}',
    refused: 'denied',
    means: { deny: 'denied', rewrite_args: 'ran rewritten' },
  },
  gate_tool_calls: { answers: reads, outcome: ran, goesOn: 'ran {}', refused: 'denied' },
  permission_asked: {
    answers: reads,
    settings: asking,
    outcome: ran,
    goesOn: 'parked',
    refused: 'denied',
  },
  permission_replied: told({ answers: reads }),
  PostToolUse: {
    answers: reads,
    outcome: async (bed) => {
      const [{ result, is_error } = { result: null, is_error: null }] = await bed.eventsOf('call_ended');
      return `${result && textOf({ role: 'user', content: result.content as never })} ${is_error}`.slice(0, 22);
    },
    goesOn: 'read ran false',
    refused: 'The tool call ran and ',
  },
  post_turn: told(),
  file_edited: told({ answers: reads }),
  session_idle: told({
    settings: mate({ daemon: {} }),
    outcome: (bed) => `${bed.models.requests.length} asked`,
    goesOn: '1 asked',
    refused: '1 asked',
  }),
  pre_suspend: {
    answers: [say('done', { delayMs: 10 })],
    play: suspending,
    outcome: async (bed) => ((await bed.eventsOf('suspended')).length > 0 ? 'suspended' : 'not'),
    goesOn: 'suspended',
    refused: 'not',
    means: { block: 'not' },
  },
  post_resume: told({
    answers: [say('done', { delayMs: 10 })],
    play: async (bed) => {
      await suspending(bed);
      await bed.send('resume');
    },
  }),
  session_error: told({
    answers: [say('half', { fail: { code: 'model_failed', message: 'no' } })],
    goesOn: 'error',
    refused: 'error',
  }),
  session_end: told(),
  pre_finish: told(),
  on_unsettled_detected: told({
    settings: { max_turns: 1 },
    answers: [say('done', { delayMs: 10 })],
    play: async (bed) => {
      await bed.send('followup', { body: 'and then' });
      await bed.time.advance(20);
    },
    goesOn: 'max_turns',
    refused: 'max_turns',
  }),
  post_finish: told(),
  loop_checkpoint: told(),
  PreStep: {
    ...stepping,
    outcome: stepped,
    goesOn: 'completed, end_turn, Do plan., Do write.',
    refused: 'step_denied, error',
    means: {
      deny: 'step_denied, error',
      // A step takes a prompt, and no other argument.
      rewrite_args: ({ args }) =>
        JSON.stringify(args) === '{"prompt":"Do less."}'
          ? 'completed, end_turn, Do less., Do write.'
          : 'step_denied, error',
    },
    rows: {
      '{args: {prompt}}': ownRow({ args: { prompt: 'Do less.' } }, 'rewrite_args', 'PreStep'),
      '{reminder, then: {args: {prompt}}}': ownRow(
        reminding({ args: { prompt: 'Do less.' } }),
        'rewrite_args',
        'PreStep',
        1,
      ),
      '{args: {prompt: ""}}': ownRow({ args: { prompt: ' ' } }, 'rewrite_args', 'PreStep'),
      '{args: {prompt, more}}': ownRow({ args: { prompt: 'Do less.', more: 1 } }, 'rewrite_args', 'PreStep'),
    },
  },
  PostStep: {
    ...stepping,
    outcome: stepped,
    goesOn: 'completed, end_turn, Do plan., Do write.',
    refused: 'step_denied, error, Do plan.',
    means: {
      deny: 'step_denied, error, Do plan.',
      rewrite_output: ({ output }) => {
        const text = typeof output === 'string' ? output : JSON.stringify(output);
        const note = `A hook replaced the output of step plan with this:\n${text}`;
        return `completed as ${JSON.stringify(output)}, end_turn, Do plan., ${note} Do write.`;
      },
    },
    rows: {
      '{output: a text}': ownRow({ output: 'a better plan' }, 'rewrite_output', 'PostStep'),
      '{output: an object}': ownRow({ output: { a: [1] } }, 'rewrite_output', 'PostStep'),
    },
  },
  OnApprovalRequested: {
    answers: reads,
    settings: asking,
    outcome: waited,
    goesOn: 'parked, not run',
    // A wrong answer refuses nothing here: a person is asked in any case.
    refused: 'parked, not run',
    means: { deny: 'deny by h for r, denied, not run' },
  },
  OnHandoffEmitted: {
    answers: [ask(call('h1', 'handoff', { to: 'cook', brief: 'cook it' })), say('done')],
    settings: { ...mate({ handoffs: ['cook'] }), personas: [{ name: 'cook' }] },
    outcome: async (bed) => {
      const [ended] = await bed.eventsOf('call_ended');
      return `${ended?.status}, with ${(await bed.eventsOf('persona_changed')).at(-1)?.provision.persona.name}`;
    },
    goesOn: 'ok, with cook',
    refused: 'denied, with mate',
    means: { deny: 'denied, with mate' },
  },
  OnBudgetThreshold: told({ settings: { limits: { tokens: 20 } } }),
  OnPersonaPaused: told({ settings: mate({}), paused: true }),
  OnPersonaResumed: told({ settings: mate({}), paused: true }),
};

/** Of the points that a run passes more than once, where the handler is asked: one time is enough to tell of. */
const ONCE: { readonly [P in HookPoint]?: Partial<HookRegistration> } = {
  loop_checkpoint: { pattern: 'iteration_end' },
  OnBudgetThreshold: { pct: 50 },
  PreStep: { step: 'plan' },
  PostStep: { step: 'plan' },
};

async function play(point: HookPoint, raw: unknown): Promise<TestBed> {
  return playWith(point, returns(raw));
}

async function playWith(point: HookPoint, handler: Handler): Promise<TestBed> {
  const stage = STAGES[point] as Stage;
  const bed = testBed();
  bed.tools = { read: { run: async () => ({ ...answer('read ran'), edited: ['a.ts'] }) } };
  bed.models.answers = stage.answers ?? [say('done')];
  bed.hooks.registrations = [hook(point, 'h', ONCE[point])];
  bed.hooks.handlers = { h: handler };
  const served = createMemoryPersonas();
  const tenant = TenantId.parse('default');
  if (stage.paused) served.setPause(tenant, 'mate', {});
  const tools = combineToolSources([createCrewTools(), bed.toolSource]);
  await bed.host({}, { tools, ...(stage.paused ? { served } : {}) });
  await bed.start(stage.settings ?? {});
  await stage.play?.(bed);
  if (stage.paused) served.setPause(tenant, 'mate', null);
  await bed.time.advance(1_000);
  return bed;
}

test('every point that sessions fire has a stage', () => {
  expect(Object.keys(STAGES).sort()).toEqual([...HOOK_POINTS].sort());
});

/** What a return has to have done, by the oracle of the protocol and what its point is about. */
function effectOf(point: HookPoint, raw: unknown, meaning: string): string {
  const { goesOn, refused, means = {} } = STAGES[point] as Stage;
  if (meaning.startsWith('verdict_')) return refused;
  const [kind = ''] = meaning.split(',');
  const inner = innermost(raw) as Record<string, unknown>;
  const own = means[kind];
  if (own !== undefined && typeof own !== 'string') return own(inner as JsonObject);
  if (kind === 'rewrite_args') return `ran ${JSON.stringify(inner.args)}`;
  if (kind === 'decision') return { allow: 'ran {}', deny: 'denied', ask: 'parked' }[inner.decision as string] ?? '';
  if (kind === 'gate') return Array.isArray(inner) && inner[0]?.allow === true ? goesOn : 'denied';
  if (kind === 'rewrite_result') {
    const text = typeof inner === 'string' ? inner : (inner.result ?? 'read ran');
    return `${text} ${typeof inner === 'string' ? false : (inner.is_error ?? false)}`;
  }
  return own ?? goesOn;
}

function innermost(raw: unknown): unknown {
  const inner = raw !== null && typeof raw === 'object' && 'then' in raw ? (raw as { then: unknown }).then : undefined;
  return inner === undefined ? raw : innermost(inner);
}

/** One return for each effect at the point: which return means what is a question of the protocol's tests. */
function rowsAt(point: HookPoint): [name: string, row: Row][] {
  const effects = new Map<string, [string, Row]>();
  for (const [name, row] of Object.entries({ ...ROWS, ...STAGES[point]?.rows })) {
    const meaning = expected(row, point);
    const key = `${meaning}: ${effectOf(point, row.raw, meaning)}`;
    if (!effects.has(key)) effects.set(key, [name, row]);
  }
  return [...effects.values()];
}

describe.each([...HOOK_POINTS])('at %s', (point) => {
  test.each(rowsAt(point))('%s', async (_name, row) => {
    const meaning = expected(row, point);
    const bed = await play(point, row.raw);
    const [returned, ...more] = await bed.eventsOf('hook_returned');
    expect(more.filter(({ hook }) => hook !== 'h')).toEqual([]);
    const [kind, reminders = '0 reminders'] = meaning.split(', ');
    expect(returned?.failure?.code ?? returned?.verdict?.kind).toBe(kind);
    expect(await (STAGES[point] as Stage).outcome(bed)).toBe(effectOf(point, row.raw, meaning));
    const said = (await bed.eventsOf('reminder_injected')).length / Math.max(1, 1 + more.length);
    expect(`${said} reminders`).toBe(reminders);
    const jobs = kind === 'job' && !more.length ? ['j1'] : [];
    const taped = (await bed.eventsOf('hook_returned')).flatMap(({ verdict }) =>
      verdict?.kind === 'job' ? [verdict.receipt.job_id] : [],
    );
    expect([...new Set(taped)]).toEqual(kind === 'job' ? ['j1'] : jobs);
  });
});

test('a refusal at OnApprovalRequested has no effect after a person has decided', async () => {
  let refuse = () => {};
  const refusal = new Promise<void>((resolve) => {
    refuse = resolve;
  });
  const bed = await playWith('OnApprovalRequested', async () => {
    await refusal;
    return { status: 'returned', raw: { deny: 'r' } };
  });
  expect(await waited(bed)).toBe('parked, not run');
  await bed.send('approve', { call_id: 'c1', decision: 'allow' });
  refuse();
  await bed.time.advance(1_000);
  expect(await bed.eventsOf('hook_returned')).toMatchObject([{ hook: 'h', verdict: { kind: 'deny', reason: 'r' } }]);
  expect(await bed.eventsOf('approval_decided')).toHaveLength(1);
  expect(await waited(bed)).toBe('allow by a person for no reason, ok, ran');
});
