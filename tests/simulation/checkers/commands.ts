/**
 * Each command that the stream has stored takes effect exactly once and in stream order, or is rejected; none is lost.
 * What becomes of the messages among them `fates.ts` looks at.
 */
import { ControlVerb, isDelivery, type JournalRecord, rejectionIn } from '@coxswain/protocol';
import { UNKNOWN_OUTCOME } from '@coxswain/turn';
import type { SentCommand } from '../history.ts';
import type { Checker, Evidence, Journal, Placed } from './check.ts';
import { eventsOf } from './check.ts';
import { consumedUntil, tombstoneOf } from './deletion.ts';

/** See the top of the file. */
export const checkCommands: Checker = (journal, evidence) => {
  const until = consumedUntil(journal, evidence);
  const sent = evidence.history
    .of('sent')
    .flatMap(({ command }) => (command.session === journal.session && command.seq <= until ? [command] : []));
  // What is deleted before it is forked leaves no fork.
  if (journal.records.length === 0 && isForkOfDeleted(journal.session, evidence)) return [];
  const consumed = journal.records.filter((record) => record.input.type === 'command');
  return [...consumedOnce(consumed, sent), ...startTaken(consumed, sent, evidence), ...tookEffect(journal, consumed)];
};

/** A session has a record of its start, unless its sender has a receipt that rejects it. */
function startTaken(
  consumed: readonly JournalRecord[],
  sent: readonly SentCommand[],
  { history }: Pick<Evidence, 'history'>,
): string[] {
  const refused = new Set(
    history
      .of('receipt')
      .flatMap(({ receipt: { session_id, command_id, stage } }) =>
        stage === 'rejected' ? [`${session_id} ${command_id}`] : [],
      ),
  );
  const isOpen = ({ verb, session, commandId }: SentCommand) =>
    verb === 'start' && !refused.has(`${session} ${commandId}`);
  return consumed.length === 0 && sent.some(isOpen) ? ['the start was lost'] : [];
}

function isForkOfDeleted(session: string, { schedule, stored }: Evidence): boolean {
  const origin = schedule.copies?.find(({ as }) => as === session)?.of;
  return origin !== undefined && tombstoneOf(origin, { stored }) !== null;
}

const idOf = (record: JournalRecord) => (record.input as { command_id: string }).command_id;

function consumedOnce(consumed: readonly JournalRecord[], sent: readonly SentCommand[]): string[] {
  const wrong: string[] = [];
  const byId = new Map<string, SentCommand[]>();
  for (const command of sent) byId.set(command.commandId, [...(byId.get(command.commandId) ?? []), command]);
  const seen = new Set<string>();
  for (const record of consumed) {
    const id = idOf(record);
    if (seen.has(id)) wrong.push(`record ${record.n}: ${id} took effect a second time`);
    seen.add(id);
    const copies = byId.get(id);
    if (!copies) wrong.push(`record ${record.n}: ${id} was never sent`);
    else if (!copies.some(({ seq }) => seq === record.cursor?.seq))
      wrong.push(`record ${record.n}: ${id} does not stand at position ${record.cursor?.seq}`);
  }
  // What came before the session was there left no record; everything else must have.
  const beginning = consumed[0]?.cursor?.seq ?? Number.POSITIVE_INFINITY;
  for (const [id, copies] of byId) {
    if (!seen.has(id) && copies.some(({ seq }) => seq >= beginning)) wrong.push(`${id} was lost`);
  }
  // Positions only go forward (see the chain), so first copies in the order of their records are in stream order.
  const firsts = consumed.map((record) => Math.min(...(byId.get(idOf(record)) ?? []).map(({ seq }) => seq)));
  for (let i = 1; i < firsts.length; i++) {
    const [before = 0, after = 0] = [firsts[i - 1], firsts[i]];
    if (after < before && after >= beginning)
      wrong.push(`${idOf(consumed[i] as JournalRecord)} was handled out of order`);
  }
  return wrong;
}

/** What becomes of a suspension that was asked for is told once more where it comes to nothing. */
const comesToNothing = (status: string) => status === 'lapsed' || status === 'blocked';

function isFateOfSuspension(event: Placed['event'], id: string): boolean {
  if (event.type === 'control_outcome') return event.command_id === id && comesToNothing(event.status);
  return event.type === 'suspended' && event.command_id === id;
}

/** What an accepted command has to leave behind. */
function tookEffect(journal: Journal, consumed: readonly JournalRecord[]): string[] {
  const wrong: string[] = [];
  const placed = eventsOf(journal);
  const delivered = placed.flatMap(({ event }) => (isDelivery(event) ? [event.command_id] : []));
  const moved = new Set(placed.flatMap(({ event }) => (event.type === 'injection_collapsed' ? [event.into] : [])));
  const orders = new Map<string, { received: string[]; delivered: string[] }>();
  const order = (mode: string) => {
    const known = orders.get(mode) ?? { received: [], delivered: [] };
    orders.set(mode, known);
    return known;
  };
  const modes = new Map<string, string>();

  for (const record of consumed) {
    const id = idOf(record);
    const { verb, body } = record.input as { verb: string; body: { mode?: string; call_id?: string } };
    const count = (holds: (one: Placed) => boolean) => placed.filter(holds).length;
    const expectOne = (what: string, holds: (one: Placed) => boolean) => {
      const found = count(holds);
      if (found !== 1) wrong.push(`${id} (${verb}) has ${found} ${what}`);
    };
    // A suspension that was accepted may be blocked by hooks when it comes to it: that is told beside.
    if (ControlVerb.safeParse(verb).success)
      expectOne(
        'control_outcome',
        ({ event }) => event.type === 'control_outcome' && event.command_id === id && !comesToNothing(event.status),
      );
    if (verb === 'suspend' && count(({ event }) => isFateOfSuspension(event, id)) > 1)
      wrong.push(`${id} (suspend) came to something more than once`);
    if (rejectionIn(record.events, id)) continue;
    switch (verb) {
      case 'steer':
      case 'remind':
      case 'followup': {
        const mode = verb === 'followup' ? 'followup' : (body.mode as string);
        modes.set(id, mode);
        order(mode).received.push(id);
        const received = { steer: 'steering_received', remind: 'reminder_injected', followup: 'followup_received' }[
          verb
        ];
        expectOne(received, ({ event }) => event.type === received && 'command_id' in event && event.command_id === id);
        break;
      }
      case 'start':
      case 'prompt':
        expectOne('prompt_received', ({ event }) => event.type === 'prompt_received' && event.command_id === id);
        break;
      case 'approve':
        // An edit is decided, or rejected, by a later record.
        expectOne(
          'decision or rejection',
          ({ event }) =>
            (event.type === 'approval_decided' || event.type === 'command_rejected') && event.command_id === id,
        );
        break;
      case 'signal':
        expectOne('signal_received', ({ event }) => event.type === 'signal_received' && event.command_id === id);
        break;
      case 'call_outcome':
        expectOne(
          'end of a call',
          ({ event }) => (event.type === 'call_ended' || event.type === 'call_returned') && event.command_id === id,
        );
        break;
    }
  }

  const decided = new Map<string, number>();
  for (const { n, event } of placed) {
    if (event.type === 'message_complete') decided.clear();
    // Asked about after a crash, a call is another question than it was before.
    if (event.type === 'approval_requested' && event.requested_by === UNKNOWN_OUTCOME) decided.delete(event.call_id);
    if (event.type !== 'approval_decided' || (event.decision !== 'allow' && event.decision !== 'deny')) continue;
    decided.set(event.call_id, (decided.get(event.call_id) ?? 0) + 1);
    if ((decided.get(event.call_id) ?? 0) > 1) wrong.push(`record ${n}: ${event.call_id} was decided again`);
  }

  for (const id of delivered) {
    const mode = modes.get(id);
    if (mode === undefined) wrong.push(`${id} was delivered and never accepted`);
    // One that stands in another's place is no longer in the order in which it came.
    else if (!moved.has(id)) order(mode).delivered.push(id);
  }
  for (const [mode, { received, delivered: out }] of orders) {
    const expected = received.filter((id) => out.includes(id));
    if (expected.join() !== out.join()) wrong.push(`${mode}: received ${expected.join()}, delivered ${out.join()}`);
  }
  return wrong;
}
