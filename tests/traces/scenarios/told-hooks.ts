/** Hooks that are told, that add reminders and begin jobs; hooks without a handler; and tables that change. */
import { ask, type Scenario, say } from '../scenario.ts';
import { at } from './hooks.ts';

/** A return with an answer inside; written without a literal, which a linter takes for a promise. */
const reminding = (reminder: object, answer: unknown): unknown =>
  Object.fromEntries([
    ['reminder', reminder],
    ['then', answer],
  ]);

/** See the top of the file. */
export const TOLD_HOOKS: readonly Scenario[] = [
  {
    name: 'hooks-remind',
    shows:
      'reminders of hooks: one before a call is denied, of two under one key the newer, one for the record only, and one that replaces what is shown',
    turns: [ask(['haul', { ms: 10 }]), ask(['look', { at: 'the bow' }]), say('Clear.'), say('Clear still.')],
    tools: ['haul', 'look'],
    hooks: [
      at('PreToolUse', reminding({ body: 'Hauling is for weekdays.' }, { deny: 'not on Sundays' }), {
        pattern: 'tool.name == "haul"',
      }),
      at(
        'post_turn',
        ({ turn }: { turn?: unknown }) => [
          { reminder: { body: `Watch ${turn}.`, dedupe_key: 'watch', ttl_turns: 2 } },
          { reminder: { body: `Watch ${turn} and tide.`, dedupe_key: 'watch', ttl_turns: 2 } },
        ],
        { persona: 'ma*' },
      ),
      at('permission_replied', { body: 'Seen to it.', mode: 'audit_only', tags: ['audit'] }, { pattern: 'look' }),
    ],
    async play(stage) {
      await stage.host();
      await stage.start();
      await stage.wait(50);
    },
  },
  {
    name: 'hooks-begin-jobs',
    shows: 'a linter is begun for an edited file and reports its end while the run goes on; a second one is unsettled',
    turns: [ask(['log', { books: ['log/day', 'log/cargo'] }]), say('Written up.', { delay_ms: 200 }), say('Mended.')],
    tools: ['log'],
    hooks: [
      at('file_edited', ({ path }: { path?: unknown }) => ({
        job: {
          status: 'queued',
          job_id: `lint:${path}`,
          affected_paths: [path, path],
          retry_hint: { retryable: false },
        },
      })),
      at('on_unsettled_detected'),
    ],
    async play(stage) {
      await stage.host();
      await stage.start();
      await stage.wait(100);
      const job = {
        job_id: 'lint:log/cargo',
        status: 'failed',
        error: 'line 3 is smudged',
        artifact_ids: ['r2', 'r1'],
      };
      await stage.send('feedback', { job: { ...job, status: 'running', error: 'none yet' } });
      await stage.send('feedback', { job });
      await stage.send('feedback', { job });
      await stage.send('followup', 'Mend it.');
      await stage.wait(300);
    },
  },
  {
    name: 'hooks-begin-quick-jobs',
    shows: 'a job ends before the hook that started it has answered; a report of an unknown job is rejected once',
    turns: [ask(['log', { books: ['log/day'] }]), say('Written up.')],
    tools: ['log'],
    hooks: [at('file_edited', { job: { status: 'queued', job_id: 'lint' } }, { afterMs: 100 })],
    async play(stage) {
      await stage.host();
      await stage.start();
      await stage.wait(50);
      await stage.send('feedback', { job: { job_id: 'lint', status: 'succeeded' } });
      await stage.send('feedback', { job: { job_id: 'another', status: 'failed' } });
      await stage.wait(300);
    },
  },
  {
    name: 'hooks-are-told',
    shows:
      'hooks hear of seams, of each decision about a call and of a budget, beside the work; the next turn waits until they have',
    turns: [
      ask(['look', { at: 'the bow' }], ['haul', { ms: 10 }]),
      say('Clear.', { usage: { input_tokens: 60, output_tokens: 0 } }),
    ],
    tools: ['haul', 'look'],
    hooks: [
      at('loop_checkpoint', undefined, { pattern: 'kind =~ "^(pre_tool_dispatch|loop_exit)$"', afterMs: 30 }),
      at('permission_replied', undefined, { afterMs: 10 }),
      at('OnBudgetThreshold', undefined, { id: 'half' }),
      at('OnBudgetThreshold', undefined, { id: 'seventy', pct: 70 }),
      at('OnBudgetThreshold', undefined, { id: 'fifty-five', pct: 55 }),
    ],
    async play(stage) {
      await stage.host();
      await stage.start({
        permissions: { rules: [{ tool: 'haul', action: 'deny' }], default: 'allow' },
        limits: { tokens: 100 },
      });
      await stage.wait(300);
    },
  },
  {
    name: 'hooks-without-handlers',
    shows: 'a registration denies by itself, another cuts a result, a third rewrites it before it is cut',
    turns: [ask(['look', { at: 'the bow' }], ['haul', { ms: 10 }]), say('Clear.')],
    tools: ['haul', 'look'],
    hooks: [
      at('PreToolUse', undefined, { pattern: 'haul', deny: 'no hauling in harbour' }),
      at('PostToolUse', 'All is well at the bow, and astern.', { id: 'rewrite', max_output: 22 }),
      at('PostToolUse', undefined, { id: 'cut', max_output: 6, no_handler: true, priority: 1 }),
    ],
    async play(stage) {
      await stage.host();
      await stage.start();
    },
  },
  {
    name: 'hooks-change',
    shows:
      'the table changes in mid-run: a gate that is not heard of any more fails closed, one that goes is not asked, nor told; a condition that does not hold asks nobody',
    turns: [
      { ...ask(['look', { at: 'the bow' }]), delay_ms: 100 },
      { ...ask(['look', { at: 'the stern' }]), delay_ms: 100 },
      say('Clear.'),
    ],
    tools: ['look'],
    hooks: [
      at('gate_tool_calls', [{ allow: true }], { id: 'gate' }),
      at('PreToolUse', { deny: 'never' }, { id: 'astern', pattern: 'tool.args.at == "the mast"' }),
      at('loop_checkpoint', undefined, { id: 'slow', pattern: 'pre_compact', afterMs: 150 }),
      at('loop_checkpoint', undefined, { id: 'hears', pattern: 'post_compact' }),
      at('session_end', true, { id: 'end' }),
    ],
    async play(stage) {
      await stage.host();
      await stage.start();
      await stage.wait(50);
      await stage.changeHooks((table) => table.map((one) => (one.id === 'gate' ? { ...one, unavailable: true } : one)));
      await stage.wait(150);
      await stage.changeHooks((table) => table.filter(({ id }) => id === 'end'));
      await stage.wait(400);
    },
  },
];
