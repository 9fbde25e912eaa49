/** Inbox feedback is said once, in the order in which it came, at the compaction seams and nowhere else. */
import type { Checker } from './check.ts';
import { eventsOf, ofType } from './check.ts';

/** See the top of the file. */
export const checkFeedback: Checker = (journal) => {
  const wrong: string[] = [];
  const placed = eventsOf(journal);
  const received = ofType(placed, 'feedback_received').map(({ event }) => event.feedback_id);
  const said = ofType(placed, 'message_injected').filter(({ event }) => event.origin === 'feedback');
  for (const [index, { n, event }] of said.entries()) {
    const { command_id: id, seam } = event;
    if (received[index] !== id) wrong.push(`record ${n}: ${id} was said when it was ${received[index]}'s turn`);
    if (seam !== 'pre_compact' && seam !== 'post_compact') wrong.push(`record ${n}: ${id} was said at ${seam}`);
  }
  const counted = ofType(placed, 'loop_checkpoint').reduce((sum, { event }) => sum + event.inbox_delivered, 0);
  if (counted !== said.length)
    wrong.push(`checkpoints speak of ${counted} pieces of feedback, ${said.length} were said`);
  return wrong;
};
