/**
 * Hand-offs: whoever is asked is whoever has the session; it goes to another persona with the good end of a call that was to
 * bring exactly that one, and with nothing else; no call begins beside such a call, and the brief is said once.
 */
import { type EventOf, textOf } from '@coxswain/protocol';
import { PROMPTS } from '../plan-handoffs.ts';
import { type Checker, eventsOf, type Journal } from './check.ts';

/** See the top of the file. */
export const checkHandoffs: Checker = (journal, { history }) => {
  const wrong: string[] = [];
  const emitted = new Map<string, EventOf<'handoff_emitted'>>();
  const owed = new Set<string>();
  let persona: string | null = null;
  const has = new Map<number, string>();
  for (const { n, events } of journal.records) {
    const ended = new Set(
      events.flatMap((event) =>
        (event.type === 'call_ended' || event.type === 'call_returned') && event.status === 'ok' ? [event.call_id] : [],
      ),
    );
    for (const event of events) {
      if (event.type === 'turn_start') {
        if (owed.size > 0) wrong.push(`record ${n}: a turn begins, and the brief of ${[...owed]} was not said`);
        emitted.clear();
      }
      if (event.type === 'handoff_emitted') {
        if (event.from !== persona) wrong.push(`record ${n}: ${event.from} hands over what ${persona} has`);
        emitted.set(event.call_id, event);
      }
      if (
        event.type === 'call_started' &&
        [...emitted.keys()].some((id) => id !== event.call_id && !isOver(journal, id, n))
      )
        wrong.push(`record ${n}: ${event.call_id} begins beside a hand-off`);
      if (event.type === 'persona_changed') {
        const name = event.provision.persona.name;
        const asked = event.handoff && emitted.get(event.handoff.call_id);
        if (event.handoff && asked?.to !== name)
          wrong.push(`record ${n}: ${name} has the session, asked was ${asked?.to}`);
        if (event.handoff && !ended.has(event.handoff.call_id))
          wrong.push(`record ${n}: the call of the hand-off did not end`);
        if (!event.handoff && persona !== null && persona !== name && !isFork(journal))
          wrong.push(`record ${n}: ${name} has the session, and nobody has handed it over`);
        if (event.handoff) owed.add(event.handoff.call_id);
        persona = name;
      }
      if (event.type === 'message_injected' && event.seam === 'handoff') {
        const { brief = '' } = emitted.get(event.command_id) ?? {};
        if (!owed.delete(event.command_id)) wrong.push(`record ${n}: a brief that is not owed is said`);
        if (!textOf(event.message).endsWith(brief)) wrong.push(`record ${n}: another brief is said than was given`);
      }
    }
    if (persona !== null) has.set(n, persona);
  }
  // A fork may be somebody else from where it begins, and what was asked before is asked again then.
  if (isFork(journal)) return wrong;
  for (const { session, effectId, system } of history.of('asked')) {
    const asked = has.get(Number(effectId.split('-')[0]));
    const prompt = asked === undefined ? undefined : PROMPTS[asked];
    if (session === journal.session && prompt !== undefined && !system.startsWith(prompt))
      wrong.push(`${effectId}: asked was "${system.slice(0, 40)}", the session is ${asked}'s`);
  }
  return wrong;
};

function isOver(journal: Journal, callId: string, by: number): boolean {
  return eventsOf(journal).some(({ n, event }) => n <= by && event.type === 'call_ended' && event.call_id === callId);
}

function isFork({ records: [first] }: Journal): boolean {
  return first?.events.some(({ type }) => type === 'session_copied') ?? false;
}
