/** Updates the host's metrics from a record. */
import type { Meters } from '@coxswain/ports';
import { isDelivery, type JournalRecord, rejectionIn, type SessionEvent, usdOf, VERBS } from '@coxswain/protocol';
import type { SessionState } from '@coxswain/turn';

/** The states before and after a record. `before` is null for the first record of a session. */
export interface Step {
  readonly before: SessionState | null;
  readonly after: SessionState;
}

/**
 * Counts a record: its command ({@link countCommand}), its events, and the tokens and cost that it added.
 * @param waitedMs as for the command.
 */
export function countRecord(meters: Meters, record: JournalRecord, step: Step, waitedMs: number | null): void {
  const { input, events } = record;
  countCommand(meters, record, waitedMs);
  if (input.type === 'owned') meters.add('coxswain_ownership_changes_total', { change: 'taken_over' });
  countSpending(meters, step);
  const atMs = Date.parse(record.at);
  for (const event of events) countEvent(meters, event, step.before, atMs);
}

/**
 * Counts the command of a record, if its input is one.
 * @param waitedMs how long the command waited in the stream, in milliseconds; null without a command, or if unknown.
 */
export function countCommand(meters: Meters, { input, events }: JournalRecord, waitedMs: number | null): void {
  if (input.type !== 'command') return;
  const verb = verbOf(input.verb);
  const outcome = rejectionIn(events, input.command_id) ? 'rejected' : 'accepted';
  meters.add('coxswain_commands_total', { verb, outcome });
  if (waitedMs !== null) meters.observe('coxswain_queue_age_seconds', { verb }, waitedMs / 1_000);
}

function countEvent(meters: Meters, event: SessionEvent, before: SessionState | null, atMs: number): void {
  if (event.type === 'agent_end') meters.add('coxswain_runs_total', { stop_reason: event.stop_reason });
  else if (event.type === 'turn_end') meters.add('coxswain_turns_total', {});
  else if (event.type === 'loop_checkpoint') meters.add('coxswain_seams_total', { seam: event.kind });
  else if (event.type === 'call_ended') {
    // As recorded: measured where the tool ran, here or by a remote worker.
    const { tool, status: outcome } = event;
    meters.observe('coxswain_tool_seconds', { tool, outcome }, event.duration_ms / 1_000);
  }
  if (!isDelivery(event) || before === null) return;
  const { pending, followups } = before.context;
  const waited = [...pending, ...followups].find(({ command_id }) => command_id === event.command_id);
  // An injection that the same record accepted and delivered did not wait.
  const sinceMs = waited ? Date.parse(waited.at) : atMs;
  meters.observe('coxswain_seam_delivery_seconds', { seam: event.seam }, Math.max(0, atMs - sinceMs) / 1_000);
}

function countSpending(meters: Meters, { before, after }: Step): void {
  const { total_usage: used, total_cost: cost, pinned } = after.context;
  const model = pinned?.model ?? 'none';
  const { total_usage: had = { input_tokens: 0, output_tokens: 0 }, total_cost: paid = 0 } = before?.context ?? {};
  const input = used.input_tokens - had.input_tokens;
  const output = used.output_tokens - had.output_tokens;
  if (input > 0) meters.add('coxswain_tokens_total', { model, direction: 'input' }, input);
  if (output > 0) meters.add('coxswain_tokens_total', { model, direction: 'output' }, output);
  if (cost !== null && paid !== null && cost > paid)
    meters.add('coxswain_cost_usd_total', { model }, usdOf(cost - paid));
}

const KNOWN_VERBS: ReadonlySet<string> = new Set([
  ...VERBS,
  'call_outcome',
  'feedback',
  'start_child',
  'cancel_child',
  'child_ended',
  'message',
]);

/** Maps unknown verbs to one label: anyone can publish under any verb. */
function verbOf(verb: string): string {
  return KNOWN_VERBS.has(verb) ? verb : 'other';
}
