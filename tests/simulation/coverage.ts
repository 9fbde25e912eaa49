/** What simulations have reached: a nemesis that never gets anywhere finds nothing, and nobody would notice. */
import type { Simulation } from './simulate.ts';

/** How often each thing has happened. */
export type Coverage = Map<string, number>;

/** Adds what one simulation has reached. */
export function cover(coverage: Coverage, { evidence, history }: Simulation): void {
  const count = (what: string) => coverage.set(what, (coverage.get(what) ?? 0) + 1);
  for (const entry of history.entries) {
    if (entry.what === 'log' && entry.reason !== null) count(`left: ${entry.reason}`);
    if (entry.what === 'host') count(`host: ${entry.did.replace(/ [\d].*$/, '')}`);
    if (entry.what === 'receipt') count(`receipt: ${entry.receipt.stage}`);
  }
  for (const { records } of evidence.journals) {
    for (const { events, input } of records) {
      count(input.type === 'command' ? `command: ${input.verb.slice(0, 16)}` : `input: ${input.type}`);
      for (const event of events) {
        count(`event: ${event.type}`);
        if (event.type === 'steering_received' && event.preempt) count('preempts');
        if (event.type === 'reminder_injected' && event.hook !== undefined) count('hook reminds');
        if (event.type === 'hook_returned' && event.verdict?.kind === 'job') count('hook begins a job');
        if (event.type === 'hook_returned' && event.failure?.message.includes('heard of')) count('hook not heard of');
        if (event.type === 'message_complete' && event.message.partial) count('cut short');
        if (event.type === 'call_ended') count(`call: ${event.status}`);
        if (event.type === 'agent_end') count(`run: ${event.stop_reason}`);
        if (event.type === 'loop_checkpoint' && event.delivered > 0) count(`delivered: ${event.kind}`);
        if (event.type === 'loop_checkpoint' && event.dispatch_skipped) count('dispatch skipped');
        if (event.type === 'command_rejected') count(`rejected: ${event.code}`);
      }
    }
  }
}

/** What hundreds of seeds must reach, or the simulation has lost its teeth. */
export const MUST_REACH: readonly string[] = [
  'left: foreign_writer',
  'left: journal_unavailable',
  'left: late_append',
  'left: unloadable',
  'host: is killed',
  'host: stands still for',
  'input: owned',
  ...['start', 'prompt', 'steer', 'remind', 'followup', 'approve', 'cancel', 'cancel_call', 'suspend', 'resume'].map(
    (verb) => `command: ${verb}`,
  ),
  ...['ok', 'error', 'denied', 'skipped', 'cancelled', 'interrupted', 'aborted'].map((status) => `call: ${status}`),
  ...['end_turn', 'terminated', 'max_turns', 'cancelled', 'error'].map((reason) => `run: ${reason}`),
  ...['accepted', 'rejected', 'delivered'].map((stage) => `receipt: ${stage}`),
  ...['iteration_start', 'pre_tool_dispatch', 'post_tool_dispatch', 'iteration_end', 'loop_exit'].map(
    (seam) => `delivered: ${seam}`,
  ),
  'dispatch skipped',
  'preempts',
  'cut short',
  'event: suspended',
  'event: resumed',
  'event: hook_vetoed',
  'event: announced',
  'input: hooks_changed',
  'hook reminds',
  'hook begins a job',
  'hook not heard of',
  'event: context_overflowed',
  'event: compaction_started',
  'event: compaction_done',
  'event: compaction_skipped',
  'event: files_edited',
  'event: guard_ended',
  'event: injection_blocked',
  'event: feedback_received',
  'input: feedback',
  'receipt: blocked',
  'event: call_args_rewritten',
  'event: call_cancel_requested',
];
