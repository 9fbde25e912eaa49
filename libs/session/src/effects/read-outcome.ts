/**
 * Parses the outcomes of effects before they are recorded: adapters can return invalid values. An unreadable record
 * would cost the whole session, and a member that JSON parsers drop (`__proto__`) would break the replay.
 */
import {
  ApprovalNoticeOutcome,
  CallAccepted,
  CallOutcome,
  CloseOutcome,
  CompactOutcome,
  ConsultOutcome,
  ModelOutcome,
  type Outcome,
  ParentReportOutcome,
  ProvisionOutcome,
  problemSentences,
  readStrictly,
  StopOutcome,
} from '@coxswain/protocol';
import type { z } from 'zod';
import { errorOutcome } from './run-tool-call.ts';

const SCHEMAS: { readonly [T in Outcome['type']]: z.ZodType } = {
  provision_outcome: ProvisionOutcome,
  model_outcome: ModelOutcome,
  compact_outcome: CompactOutcome,
  call_outcome: CallOutcome,
  call_accepted: CallAccepted,
  consult_outcome: ConsultOutcome,
  close_outcome: CloseOutcome,
  stop_outcome: StopOutcome,
  notify_outcome: ParentReportOutcome,
  notice_outcome: ApprovalNoticeOutcome,
};

/**
 * The outcome in recordable form. The invalid outcome of a call, a model call or a compaction becomes its failure.
 * @throws Error for any other invalid outcome: a broken invariant.
 */
export function readOutcome(outcome: Outcome): Outcome {
  // Read by `provisionSession`.
  if (outcome.type === 'provision_outcome' && outcome.status === 'ok') return outcome;
  const parsed = SCHEMAS[outcome.type].safeParse(outcome);
  if (parsed.success) return parsed.data as Outcome;
  const problem = wrongWith(outcome);
  const { effect_id } = outcome;
  switch (outcome.type) {
    case 'call_outcome': {
      const { result } = errorOutcome('error', `The tool's answer cannot be read: ${problem}`, 'tool_failed');
      return { type: 'call_outcome', effect_id, call_id: outcome.call_id, status: 'error', result, duration_ms: 0 };
    }
    case 'model_outcome':
      return {
        type: 'model_outcome',
        effect_id,
        status: 'failed',
        message: { role: 'assistant', content: [] },
        finish_reason: 'error',
        usage: { input_tokens: 0, output_tokens: 0 },
        body_streamed: outcome.body_streamed === true,
        error: { code: 'model_stream_broken', message: `the answer cannot be read: ${problem}` },
        attempts: 1,
        duration_ms: 0,
      };
    case 'compact_outcome':
      return {
        type: 'compact_outcome',
        effect_id,
        status: 'failed',
        text: '',
        usage: { input_tokens: 0, output_tokens: 0 },
        error: { code: 'model_stream_broken', message: `the summary cannot be read: ${problem}` },
        attempts: 1,
        duration_ms: 0,
      };
    default:
      throw new Error(`the outcome of effect ${effect_id} cannot be read: ${problem}`);
  }
}

function wrongWith(outcome: Outcome): string {
  const read = readStrictly(SCHEMAS[outcome.type], outcome);
  return read.ok ? '' : problemSentences(read.problems).join('; ');
}
