/** What hooks are told of beside the work: seams, decisions about calls, thresholds; and what their reminders and jobs do. */
import { describe, test } from 'vitest';
import { given } from './given.ts';
import { asked, call, hook, hooksSaid, jobReported, provisioned, running, started } from './moves.ts';

describe('a decision about a call', () => {
  test('is told, also where a rule has made it', () => {
    given(running({ hooks: [hook('permission_replied', 'told')] }))
      .when(asked(call('a', 'read')))
      .thenIncludes('call_started a', 'hook_call told permission_replied');
  });

  test('is none where a PreToolUse hook refuses the call: nobody asked about permissions', () => {
    given(running({ hooks: [hook('PreToolUse', 'pre'), hook('permission_replied', 'told')] }), asked(call('a', 'read')))
      .when(hooksSaid({ deny: 'no' }))
      .thenIncludes('call_ended a denied by hook')
      .thenNever('hook_call told');
  });
});

test('a condition on the payload that does not hold asks nobody', () => {
  const onPath = hook('PreToolUse', 'guard', { pattern: 'tool.args.path == "secret.txt"' });
  given(running({ hooks: [onPath] }))
    .when(asked(call('a', 'read', { args: { path: 'plan.md' } })))
    .thenIncludes('call_started a')
    .thenNever('hook_call guard');
  given(running({ hooks: [onPath] }))
    .when(asked(call('a', 'read', { args: { path: 'secret.txt' } })))
    .thenIncludes('hook_call guard PreToolUse a');
});

test('a job whose end was reported is open no longer', () => {
  const queued = { job: { status: 'queued', job_id: 'j1' } };
  given(started(), provisioned({ hooks: [hook('session_start', 'h')] }), hooksSaid(queued), jobReported('j1'))
    .when(jobReported('j1', 'failed'))
    .thenIncludes('command_rejected job_unknown report-j1-failed');
});
