/** What models were shown: calls with their results, and every steer that was delivered, verbatim, ever after. */

import { textOf } from '@coxswain/protocol';
import { Transcript } from '@coxswain/session';
import { unpaired } from '../sim-models.ts';
import type { Checker } from './check.ts';
import { eventsOf } from './check.ts';

/** See the top of the file. */
export const checkShown: Checker = (journal, { history }) => {
  const wrong = history.of('shown').flatMap(({ session, problem }) => (session === journal.session ? [problem] : []));
  const transcript = new Transcript();
  const placed = eventsOf(journal);
  for (const { event } of placed) transcript.push(event);
  const messages = transcript.view();
  const problem = unpaired(messages);
  if (problem) wrong.push(problem);
  const shown = messages.map(textOf);
  const over = new Set(
    placed.flatMap(({ event }) =>
      event.type === 'reminder_expired' || event.type === 'reminder_deduped' ? [event.command_id] : [],
    ),
  );
  for (const { event } of placed) {
    if (event.type !== 'message_injected' && event.type !== 'reminder_fired') continue;
    if (event.audit_only || over.has(event.command_id)) continue;
    const text = textOf(event.message);
    if (shown.filter((one) => one === text).length === 0) wrong.push(`${event.command_id} is not in the transcript`);
  }
  return wrong;
};
