/** The run that begins with what another session has sent. */
import { messageText, type SessionEvent, userText } from '@coxswain/protocol';
import type { PendingFollowup, SessionContext } from './context.ts';

/** As the record has it, wherever the run before stood when the message came. */
export function promptOfMessage(
  { run }: SessionContext,
  { command_id, body, from, actor, replaced_by }: Omit<PendingFollowup, 'at'>,
): SessionEvent {
  return {
    type: 'prompt_received',
    command_id,
    run: run + 1,
    messages: [userText(messageText(body, from))],
    ...(actor ? { actor } : {}),
    ...(from ? { from } : {}),
    ...(replaced_by === undefined ? {} : { replaced_by }),
  };
}
