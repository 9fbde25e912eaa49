/**
 * What models were shown: calls with their results, and every steer of the run, verbatim, in each prompt from its delivery
 * on, whatever was compacted.
 */
import { type EventOf, type Message, textOf } from '@coxswain/protocol';
import { Transcript } from '@coxswain/session';
import type { History } from '../history.ts';
import { unpaired } from '../sim-models.ts';
import type { Checker, Journal } from './check.ts';
import { eventsOf } from './check.ts';
import { promptsOf } from './prompts.ts';

type Said = EventOf<'message_injected' | 'reminder_fired'>;

/** See the top of the file. */
export const checkShown: Checker = (journal, { history }) => {
  const wrong = history.of('shown').flatMap(({ session, problem }) => (session === journal.session ? [problem] : []));
  const transcript = new Transcript();
  /** Said since the run began; and of these, what a compaction may take. */
  let steers: EventOf<'message_injected'>[] = [];
  let others: Said[] = [];
  const missing = (view: readonly Message[], said: readonly Said[]) => {
    const shown = view.map(textOf);
    return said.filter(({ message }) => !shown.includes(textOf(message))).map(({ command_id }) => command_id);
  };
  for (const { event } of eventsOf(journal)) {
    transcript.push(event);
    if (event.type === 'prompt_received') steers = [];
    if (event.type === 'compaction_done' && event.summary !== undefined) others = [];
    if (event.type === 'message_injected' && !event.audit_only)
      (event.origin === 'steer' ? steers : others).push(event);
    if (event.type === 'reminder_fired' && !event.audit_only) others.push(event);
    if (event.type === 'reminder_expired' || event.type === 'reminder_deduped')
      others = others.filter(({ command_id }) => command_id !== event.command_id);
    // The model is asked behind this seam.
    if (event.type !== 'loop_checkpoint' || event.kind !== 'post_compact') continue;
    const view = transcript.view();
    const problem = unpaired(view);
    if (problem) wrong.push(problem);
    for (const id of missing(view, [...steers, ...others])) wrong.push(`${id} is not in the transcript`);
  }
  return [...wrong, ...missingFromPrompts(journal, history)];
};

// What was really sent is looked at too: that a transcript holds a steer is no proof that a model was shown it.
function missingFromPrompts(journal: Journal, history: History): string[] {
  const wrong: string[] = [];
  const placed = eventsOf(journal);
  for (const { at, effectId, said } of promptsOf(journal, history)) {
    for (let index = at; index >= 0; index--) {
      const event = placed[index]?.event;
      if (event?.type === 'prompt_received') break;
      if (event?.type !== 'message_injected' || event.origin !== 'steer' || event.audit_only) continue;
      if (!said.includes(textOf(event.message))) wrong.push(`${event.command_id} is not in the prompt of ${effectId}`);
    }
  }
  return wrong;
}
