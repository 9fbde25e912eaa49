/**
 * Hooks that the session does not wait for: seams, decisions about calls, thresholds; and their reminders and jobs.
 */
import { describe, expect, test } from 'vitest';
import { given } from './given.ts';
import {
  answered,
  asked,
  call,
  hook,
  hooksSaid,
  jobReported,
  provisioned,
  returned,
  running,
  started,
  steered,
  using,
} from './moves.ts';

describe('a decision about a call', () => {
  test('is announced, also if a rule made it', () => {
    given(running({ hooks: [hook('permission_replied', 'told')] }))
      .when(asked(call('a', 'read')))
      .thenIncludes('call_started a', 'hook_call told permission_replied');
  });

  test('is not announced if a PreToolUse hook refuses the call: permissions were not checked', () => {
    given(running({ hooks: [hook('PreToolUse', 'pre'), hook('permission_replied', 'told')] }), asked(call('a', 'read')))
      .when(hooksSaid({ deny: 'no' }))
      .thenIncludes('call_ended a denied by hook')
      .thenNever('hook_call told');
  });
});

describe('a threshold of a budget', () => {
  const at = (pct: number) => hook('OnBudgetThreshold', `at-${pct}`, { pct });
  const used = (tokens: number, id: string) => [using(tokens - 1, 1, asked(call(id, 'read')))];

  test('is announced to hooks of this percentage only', () => {
    given(running({ budgets: { tokens: 100 }, hooks: [at(50), at(80)] }), used(50, 'a'))
      .when(hooksSaid(undefined), returned('a'), used(30, 'b'))
      .thenIncludes('budget_threshold tokens 80%', 'hook_call at-80 OnBudgetThreshold')
      .thenCount('hook_call at-50', 1)
      .thenCount('hook_call at-80', 1);
  });

  test('is announced at a percentage that only a hook names', () => {
    given(running({ budgets: { tokens: 100 }, hooks: [at(33)] }))
      .when(used(33, 'a'))
      .thenIncludes('budget_threshold tokens 33%', 'hook_call at-33 OnBudgetThreshold');
  });

  test('without a percentage in a hook is announced at 50, 80, 95 and 100, and not at percentages of other hooks', () => {
    const hooks = [hook('OnBudgetThreshold', 'bare'), at(33)];
    given(running({ budgets: { tokens: 100 }, hooks }))
      .when(used(33, 'a'), hooksSaid(undefined))
      .thenIncludes('hook_call at-33 OnBudgetThreshold')
      .thenNever('hook_call bare')
      .when(returned('a'), used(17, 'b'))
      .thenIncludes('budget_threshold tokens 50%', 'hook_call bare OnBudgetThreshold');
  });
});

describe('a reminder of a hook', () => {
  const idle = hook('loop_checkpoint', 'h', { pattern: 'kind == "daemon_idle_pre"' });

  test('with the key of another hook in the same consult replaces it: the last one, at the position of the first', () => {
    const three = ['one', 'two', 'three'].map((id) => hook('PreToolUse', id));
    const keyed = (body: string) => ({ body, dedupe_key: 'k' });
    const { session } = given(running({ hooks: three }), asked(call('a', 'read'))).when(
      hooksSaid(keyed('first'), { body: 'between' }, keyed('last')),
    );
    const injected = session.steps.flatMap(({ events }) =>
      events.filter((event) => event.type === 'reminder_injected'),
    );
    expect(injected).toMatchObject([
      { hook: 'three', body: 'last' },
      { hook: 'two', body: 'between' },
    ]);
    expect(session.state.context.reminders.map(({ dedupe_key }) => dedupe_key)).toEqual(['k', undefined]);
  });

  test('does not wake an idle daemon: it stays in the transcript until something else does', () => {
    given(running({ daemon: true, hooks: [idle] }), answered())
      .when(hooksSaid({ body: 'sleep well' }))
      .thenIncludes('hook_returned h loop_checkpoint no_objection', 'announced loop_checkpoint')
      .thenNever('loop_checkpoint daemon_idle_post')
      .thenState('daemon_idle.waiting')
      .when(steered('s'))
      .thenIncludes('loop_checkpoint daemon_idle_post', 'turn_start 2');
  });
});

test('a condition on the payload that is false calls no hook', () => {
  const onPath = hook('PreToolUse', 'guard', { pattern: 'tool.args.path == "secret.txt"' });
  given(running({ hooks: [onPath] }))
    .when(asked(call('a', 'read', { args: { path: 'plan.md' } })))
    .thenIncludes('call_started a')
    .thenNever('hook_call guard');
  given(running({ hooks: [onPath] }))
    .when(asked(call('a', 'read', { args: { path: 'secret.txt' } })))
    .thenIncludes('hook_call guard PreToolUse a');
});

test('a job that two hooks report is one job', () => {
  const both = [hook('session_start', 'one'), hook('session_start', 'two')];
  const queued = { job: { status: 'queued', job_id: 'j1' } };
  const { session } = given(started(), provisioned({ hooks: both })).when(hooksSaid(queued, queued));
  expect(session.state.context.jobs).toEqual([{ job_id: 'j1', hook: 'one' }]);
});

describe('a report of an unknown job', () => {
  const asked = [started(), provisioned({ hooks: [hook('session_start', 'h')] })] as const;
  const queued = (job_id: string) => ({ job: { status: 'queued', job_id } });

  test('is rejected if no hook is being called', () => {
    given(...asked, hooksSaid(undefined))
      .when(jobReported('j1'))
      .thenJournal('command_rejected job_unknown report-j1-succeeded');
  });

  test('waits for the called hooks: one of them may have started it', () => {
    const { session } = given(...asked)
      .when(jobReported('j1'), jobReported('j2', 'running'))
      .thenJournal('job_report_deferred j1 succeeded', 'job_report_deferred j2 running')
      .when(jobReported('j1'))
      .thenNothing()
      .when(hooksSaid(queued('j1')))
      .thenIncludes(
        'hook_returned h session_start job',
        'job_reported j1 succeeded',
        'feedback_received feedback:1 hook:h',
        'command_rejected job_unknown report-j2-running',
        'message_injected feedback:1 feedback at pre_compact',
      )
      .when(jobReported('j1'), jobReported('j2', 'running'))
      .thenNothing();
    expect(session.state.context.jobs).toEqual([]);
  });

  test('delivers the feedback of each report', () => {
    const two = [hook('session_start', 'one'), hook('session_start', 'two')];
    given(started(), provisioned({ hooks: two }))
      .when(jobReported('j1'), jobReported('j2', 'failed'))
      .when(hooksSaid(queued('j1'), queued('j2')))
      .thenIncludes('feedback_received feedback:1 hook:one', 'feedback_received feedback:2 hook:two');
  });
});

test('a job with a reported end is no longer open', () => {
  const queued = { job: { status: 'queued', job_id: 'j1' } };
  given(started(), provisioned({ hooks: [hook('session_start', 'h')] }), hooksSaid(queued), jobReported('j1'))
    .when(jobReported('j1', 'failed'))
    .thenIncludes('command_rejected job_unknown report-j1-failed');
});
