/** What simulations have reached: a nemesis that never gets anywhere finds nothing, and nobody would notice. */
import { type EventOf, type SessionEvent, tombstoneIn } from '@coxswain/protocol';
import type { Journal } from './checkers/check.ts';
import type { History } from './history.ts';
import type { Simulation } from './simulate.ts';

/** How often each thing has happened. */
export type Coverage = Map<string, number>;

/** Adds what one simulation has reached. */
export function cover(coverage: Coverage, { evidence, history }: Simulation): void {
  const count = (what: string) => coverage.set(what, (coverage.get(what) ?? 0) + 1);
  for (const entry of history.entries) {
    if (entry.what === 'log' && entry.reason !== null) count(`left: ${entry.reason}`);
    if (entry.what === 'host') count(`host: ${entry.did.replace(/ [\d].*$/, '')}`);
    if (entry.what === 'question' && entry.end) count(`question: ${entry.end}`);
    if (entry.what === 'struck') count(`${entry.kind}, ${entry.how}: ${entry.moment}`);
    if (entry.what === 'deletion') count(`from outside: ${entry.did}`);
    if (entry.what === 'receipt') {
      count(`receipt: ${entry.receipt.stage}`);
      if (entry.receipt.code === 'session_deleted') count('told: it is deleted');
    }
  }
  for (const { written, stands } of evidence.stored?.values() ?? []) {
    const newest = stands.at(-1);
    if (!newest || !tombstoneIn(newest)) continue;
    count(stands.length === written.length ? 'deleted: by command' : 'deleted: from outside');
  }
  for (const journal of evidence.journals) {
    for (const { events, input } of journal.records) {
      if (input.type === 'command')
        for (const what of Object.keys(input.copied_from?.changes ?? {})) count(`changed: ${what}`);
      count(input.type === 'command' ? `command: ${input.verb.slice(0, 16)}` : `input: ${input.type}`);
      for (const event of events) {
        count(`event: ${event.type}`);
        for (const what of detailOf(event)) count(what);
      }
    }
    for (const what of struckAt(journal, history)) count(`killed: ${what}`);
  }
}

function detailOf(event: SessionEvent): string[] {
  switch (event.type) {
    case 'steering_received':
      return event.preempt ? ['preempts'] : [];
    case 'reminder_injected':
      return [
        event.preempt && 'preempts',
        event.hook !== undefined && 'hook: reminds',
        ...reminderDetail(event),
      ].filter((what) => typeof what === 'string');
    case 'session_copied':
      return [`copied: ${event.how}`, ...(event.before ? ['copied: a copy'] : [])];
    case 'hook_returned':
      return [
        ...(event.verdict?.kind === 'job' ? ['hook: begins a job'] : []),
        ...(event.failure?.message.includes('no live instance') ? ['hook: not heard of'] : []),
      ];
    case 'message_complete':
      return event.message.partial ? ['cut short'] : [];
    case 'call_started':
      return [`tool: ${event.tool}`];
    case 'call_ended':
      return [
        ...(event.tool === 'handoff' ? [`hand-off: ${event.result.detail?.code ?? event.status}`] : []),
        `call: ${event.status}`,
        ...(event.command_id === undefined ? [] : ['call: ended by command']),
      ];
    case 'agent_end':
      return [`run: ${event.stop_reason}`];
    case 'loop_checkpoint':
      return [
        ...(event.delivered > 0 ? [`delivered: ${event.kind}`] : []),
        ...(event.inbox_delivered > 0 ? [`feedback: ${event.kind}`] : []),
        ...(event.dispatch_skipped ? ['dispatch skipped'] : []),
      ];
    case 'command_rejected':
      return [`rejected: ${event.code}`];
    case 'control_outcome':
      return [`${event.control}: ${event.status}`];
    case 'suspended': {
      const timed = event.until_ms !== undefined;
      const until = timed
        ? event.signal === undefined
          ? 'time'
          : 'time or signal'
        : ((event.signal && 'signal') ?? 'open');
      return [
        `suspended: ${until}`,
        ...(timed ? [`on timeout: ${event.on_timeout ?? 'resume_with_summary'}`] : []),
        ...(event.call_id === undefined ? [] : ['suspended: by itself']),
      ];
    }
    case 'resumed':
      return [`resumed: ${event.cause}`, ...(event.slept_ms > DAY_MS ? ['slept for days'] : [])];
    case 'persona_changed':
      return event.handoff ? ['handed over'] : [];
    case 'step_started':
      return event.attempt > 1 ? ['step: begun again'] : [];
    case 'step_args_rewritten':
    case 'step_output_rewritten':
      return ['step: rewritten'];
    case 'step_finished':
      return [`step: ${event.status}`, ...(event.error_boundary ? [`step: ${event.error_boundary}`] : [])];
    case 'run_failed':
      return [`failed: ${event.source}`];
    case 'timer_fired':
      return [`timer: ${event.what}`];
    case 'budget_threshold': {
      const how = event.percent < 100 ? 'told' : event.needed === undefined ? 'used up' : 'cannot cover more';
      return [`budget ${event.budget}: ${how}`];
    }
    case 'stop_condition_held':
      return [`stop: ${Object.keys(event.condition)[0]}`];
    case 'reminder_expired':
      return [`expired: ${event.reason}`];
    case 'compaction_done':
      return [`compacted: ${event.mode}`, `compacted: ${event.strategy}`];
    default:
      return [];
  }
}

function reminderDetail({ tags, propagate, role_hint, preserve_on_compact }: EventOf<'reminder_injected'>): string[] {
  return [
    ...(tags.length > 0 ? ['reminder: tags'] : []),
    ...(preserve_on_compact ? ['reminder: preserved'] : []),
    `reminder: ${propagate}`,
    `reminder: ${role_hint}`,
  ];
}

const DAY_MS = 24 * 60 * 60 * 1_000;

/** What a session was at whenever a host was killed. */
function struckAt(journal: Journal, history: History): string[] {
  const killsMs = history.of('host').flatMap(({ did, atMs }) => (did === 'is killed' ? [atMs] : []));
  if (killsMs.length === 0) return [];
  const storedMs = history.of('stored').filter(({ session }) => session === journal.session);
  const doing = new Map<string, string>();
  const struck: string[] = [];
  for (const [index, { events, state, effects_open }] of journal.records.entries()) {
    for (const event of events) follow(doing, event);
    const sinceMs = storedMs[index]?.atMs ?? 0;
    const untilMs = storedMs[index + 1]?.atMs ?? Number.POSITIVE_INFINITY;
    const [top = ''] = typeof state === 'string' ? [state] : Object.keys(state);
    if (top === 'stopped' || top === 'failed') continue;
    const kills = killsMs.filter((atMs) => atMs >= sinceMs && atMs < untilMs).length;
    if (top === 'daemon_idle' && effects_open.length > 0) doing.set('wake interval', 'until the wake interval');
    else doing.delete('wake interval');
    for (let i = 0; i < kills; i++) struck.push(top, ...new Set(doing.values()));
  }
  return struck;
}

/** What is under way, by what ends it. */
function follow(doing: Map<string, string>, event: SessionEvent): void {
  switch (event.type) {
    case 'suspended':
      doing.set('sleep', event.until_ms === undefined ? 'until someone comes' : 'until the time comes');
      break;
    case 'resumed':
      doing.delete('sleep');
      break;
    case 'handoff_emitted':
      doing.set(`call ${event.call_id}`, 'in a hand-off');
      break;
    case 'call_accepted':
      doing.set(`call ${event.call_id}`, 'with a call taken up');
      break;
    case 'call_ended':
      doing.delete(`call ${event.call_id}`);
      break;
    case 'compaction_started':
      doing.set('compaction', 'in a compaction');
      break;
    case 'compaction_done':
    case 'compaction_skipped':
      doing.delete('compaction');
      break;
    case 'stop_predicates_asked':
      doing.set('predicates', 'while predicates are asked');
      break;
    case 'stop_predicates_answered':
      doing.delete('predicates');
      break;
    case 'budget_threshold':
      doing.set('budget', 'with a budget partly used');
      break;
    case 'reminder_fired':
      doing.set(`reminder ${event.command_id}`, 'with a reminder shown');
      break;
    case 'reminder_expired':
    case 'reminder_deduped':
      doing.delete(`reminder ${event.command_id}`);
      break;
    case 'agent_end':
      for (const what of doing.keys()) if (!what.startsWith('reminder')) doing.delete(what);
      break;
    default:
      break;
  }
}

/** What hundreds of seeds must reach, or the simulation has lost its teeth. */
export const MUST_REACH: readonly string[] = [
  ...each('left', ['foreign_writer', 'journal_unavailable', 'late_append', 'load_failed']),
  ...each('host', ['is killed', 'stands still for', 'attaches to a call']),
  ...['tools', 'hooks', 'personas'].flatMap((kind) =>
    ['kill', 'freeze'].flatMap((how) => each(`${kind}, ${how}`, ['before', 'between', 'after'])),
  ),
  ...each('event', ['persona_step_lost', 'waiting_for_persona', 'persona_wait_ended']),
  ...each('tools, stop', ['after']),
  ...each('personas, stop', ['after']),
  ...each('input', ['owned', 'feedback', 'timer', 'call_accepted']),
  ...each('command', ['start', 'prompt', 'steer', 'remind', 'followup', 'approve', 'cancel', 'cancel_call', 'suspend']),
  ...each('command', ['resume', 'signal', 'revoke', 'replace', 'call_outcome']),
  ...each('call', ['ok', 'error', 'denied', 'skipped', 'cancelled', 'interrupted', 'aborted', 'ended by command']),
  ...each('run', ['end_turn', 'terminated', 'max_turns', 'cancelled', 'error', 'stop_condition', 'budget_exceeded']),
  ...each('receipt', ['accepted', 'rejected', 'delivered', 'blocked', 'revoked']),
  ...each('delivered', ['iteration_start', 'pre_tool_dispatch', 'post_tool_dispatch', 'iteration_end', 'loop_exit']),
  ...each('delivered', ['daemon_idle_post']),
  ...each('feedback', ['pre_compact', 'post_compact']),
  'dispatch skipped',
  'preempts',
  'cut short',
  'slept for days',
  ...each('suspended', ['open', 'time', 'signal', 'time or signal', 'by itself']),
  ...each('on timeout', ['resume_with_summary', 'fail', 'resume_with_input']),
  ...each('resumed', ['command', 'interrupt', 'signal', 'timeout']),
  ...each('suspend', ['suspending', 'blocked', 'already_suspended', 'not_running']),
  ...each('resume', ['resumed', 'not_suspended']),
  ...each('failed', ['suspension', 'model', 'prompt']),
  ...each('timer', ['suspension', 'wake_interval', 'time_budget']),
  ...['tokens', 'usd', 'wall_time_ms'].flatMap((budget) => each(`budget ${budget}`, ['told', 'used up'])),
  'budget tokens: cannot cover more',
  ...each('stop', ['text', 'tool', 'predicate']),
  ...each('revoke', ['revoked', 'already_delivered', 'already_revoked', 'unknown_command_id']),
  ...each('replace', ['replaced', 'already_delivered']),
  ...each('reminder', ['tags', 'preserved', 'session', 'all', 'none']),
  ...each('reminder', ['system', 'developer', 'user_block', 'ephemeral_cache']),
  ...each('expired', ['ttl', 'compaction', 'cleared']),
  ...each('compacted', ['window', 'overflow', 'summary', 'notes', 'clear_tool_results']),
  ...each('rejected', [
    'edited_call_denied',
    'call_not_open',
    'stale_epoch',
    'already_decided',
    'session_busy',
    'internal_subject',
  ]),
  ...each('tool', ['finish', 'in_order', 'park', 'long_job', 'long_look', 'stubborn', 'remote_count']),
  ...each('hook', ['reminds', 'begins a job', 'not heard of']),
  ...each('step', ['completed', 'failed', 'unfinished', 'fail', 'continue', 'escalate', 'begun again', 'rewritten']),
  'handed over',
  ...each('hand-off', ['ok', 'denied', 'skipped', 'persona_not_found', 'handoff_not_listed', 'second_handoff']),
  'input: hooks_changed',
  ...each('event', [
    'announced',
    'hook_vetoed',
    'context_overflowed',
    'compaction_started',
    'compaction_skipped',
    'files_edited',
  ]),
  ...each('event', [
    'guard_ended',
    'injection_blocked',
    'injection_collapsed',
    'feedback_received',
    'reminder_deduped',
  ]),
  ...each('event', ['edited_call_checked', 'call_args_rewritten', 'call_cancel_requested', 'stop_predicates_answered']),
  ...each('killed', ['provisioning', 'assistant_streaming', 'function_execute', 'function_awaiting_approval']),
  ...each('killed', ['daemon_idle', 'suspended', 'until the time comes', 'until someone comes']),
  ...each('killed', ['until the wake interval', 'with a call taken up', 'with a budget partly used']),
  ...each('deleted', ['by command', 'from outside']),
  ...each('from outside', ['deleted', 'completed', 'broken off']),
  'told: it is deleted',
  'command: delete',
  ...each('copied', ['fork', 'import', 'a copy']),
  ...each('changed', ['prompt', 'verdicts', 'result', 'model', 'persona']),
  ...each('killed', ['with a reminder shown', 'in a compaction', 'while predicates are asked']),
];

function each(kind: string, whats: readonly string[]): string[] {
  return whats.map((what) => `${kind}: ${what}`);
}
