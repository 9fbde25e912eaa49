/** Pending approvals in the results of tools. */
import type { SessionStatus } from '@coxswain/protocol';
import type { z } from 'zod';
import { cutArgs, shortenText } from '../shorten-text.ts';
import type { Approval } from './tool-inputs.ts';

/** Formats one approval. */
export function shownApproval(
  { session_id, persona }: Pick<SessionStatus, 'session_id' | 'persona'>,
  { call_id, tool, args, question, since, expires_at }: SessionStatus['approvals'][number],
): z.output<typeof Approval> {
  return {
    session_id,
    persona,
    call_id,
    tool,
    args: cutArgs(args),
    question: question === undefined ? null : shortenText(question),
    since,
    expires_at: expires_at ?? null,
  };
}
