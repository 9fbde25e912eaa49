import { type CommandId, type JournalRecord, Receipt } from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
import { JournalReceipt } from '../src/journal-receipt.ts';

type Part = Pick<JournalRecord, 'n'> & { readonly verb?: string; readonly events?: object[]; readonly state?: string };

const ID = 'mine' as CommandId;

function fateAfter(...parts: readonly Part[]) {
  const fate = new JournalReceipt(ID);
  let receipt: unknown = null;
  for (const { n, verb, events = [], state = 'step_stream' } of parts) {
    const input = verb === undefined ? { type: 'owned' } : { type: 'command', verb, command_id: ID, body: {} };
    receipt = fate.add({ session_id: 's', n, input, events, state } as unknown as JournalRecord);
  }
  return receipt;
}

const injected = { type: 'message_injected', command_id: ID, origin: 'steer', seam: 'post_tool_dispatch', turn: 2 };
const head = { type: 'receipt', session_id: 's', command_id: ID };

describe('what the journal says of a command', () => {
  test('nothing before it has come', () => {
    expect(fateAfter({ n: 1 }, { n: 2, events: [{ ...injected, command_id: 'another' }] })).toBeNull();
  });

  test('accepted in the record that holds it, also when more follows', () => {
    expect(fateAfter({ n: 1 }, { n: 2, verb: 'steer' }, { n: 3 })).toEqual({ ...head, stage: 'accepted', n: 2 });
  });

  test('a receipt has its members in the order that the bus has', () => {
    const receipt = fateAfter({ n: 2, verb: 'steer' }, { n: 3, events: [injected] });
    expect(Object.keys(receipt as object)).toEqual(Object.keys(Receipt.parse(receipt)));
  });

  test('rejected, with what was said of it; a repetition later changes nothing', () => {
    const rejected = {
      type: 'command_rejected',
      command_id: ID,
      code: 'not_pending',
      message: 'why',
      field: 'call_id',
    };
    expect(fateAfter({ n: 4, verb: 'approve', events: [rejected] }, { n: 5, verb: 'approve' })).toEqual({
      ...head,
      stage: 'rejected',
      n: 4,
      code: 'not_pending',
      message: 'why',
      field: 'call_id',
    });
  });

  test('a deferred report is decided by a later record', () => {
    const deferred = { n: 2, verb: 'feedback', events: [{ type: 'job_report_deferred', command_id: ID }] };
    expect(fateAfter(deferred, { n: 3 })).toBeNull();
    const reported = { type: 'job_reported', command_id: ID };
    expect(fateAfter(deferred, { n: 3, events: [reported] })).toEqual({ ...head, stage: 'accepted', n: 3 });
    const rejected = {
      type: 'command_rejected',
      verb: 'feedback',
      command_id: ID,
      code: 'job_unknown',
      message: 'why',
    };
    expect(fateAfter(deferred, { n: 3, events: [rejected] })).toEqual({
      ...{ ...head, n: 3 },
      ...{ stage: 'rejected', code: 'job_unknown', message: 'why' },
    });
  });

  test('an edit is decided, or rejected, by a later record; what that record rejects besides is not its fate', () => {
    const edit = { n: 2, verb: 'approve', events: [{ type: 'edited_call_proposed', command_id: ID }] };
    const decided = { type: 'approval_decided', command_id: ID, decision: 'allow' };
    const other = {
      type: 'command_rejected',
      verb: 'approve',
      command_id: 'other',
      code: 'already_decided',
      message: '',
    };
    expect(fateAfter(edit)).toBeNull();
    expect(fateAfter(edit, { n: 3, events: [decided, other] })).toEqual({ ...head, stage: 'accepted', n: 3 });
    const detail = { by: 'hook', hook: 'limit' };
    const denied = { ...other, command_id: ID, code: 'edited_call_denied', message: 'why', detail };
    expect(fateAfter(edit, { n: 3, events: [denied] })).toEqual({
      ...{ ...head, n: 3, stage: 'rejected' },
      ...{ code: 'edited_call_denied', message: 'why', detail },
    });
    expect(fateAfter({ n: 3, verb: 'approve', events: [other] })).toEqual({ ...head, stage: 'accepted', n: 3 });
  });

  test('delivered, where and in which turn', () => {
    expect(fateAfter({ n: 1, verb: 'steer' }, { n: 2, events: [injected], state: 'stopped' })).toEqual({
      ...head,
      stage: 'delivered',
      n: 2,
      seam: 'post_tool_dispatch',
      turn: 2,
    });
  });

  test('blocked by a hook, with its reason', () => {
    const blocked = { type: 'injection_blocked', command_id: ID, reason: 'no' };
    const told = { ...head, stage: 'blocked', n: 2, reason: 'no' };
    expect(fateAfter({ n: 1, verb: 'steer' }, { n: 2, events: [blocked] }, { n: 3, state: 'stopped' })).toEqual(told);
  });

  test('revoked: nobody waits for what was taken back, nor for what a newer one has taken the place of', () => {
    const taken = { type: 'control_outcome', control: 'revoke', status: 'revoked', command_id: 'r', target: ID };
    expect(fateAfter({ n: 1, verb: 'steer' }, { n: 2, events: [taken] }, { n: 3, state: 'stopped' })).toEqual({
      ...head,
      stage: 'revoked',
      n: 2,
      reason: 'revoked',
      detail: { revoked_by: 'r' },
    });
    const collapsed = { type: 'injection_collapsed', command_id: ID, into: 'newer', dedupe_key: 'k' };
    expect(fateAfter({ n: 1, verb: 'followup' }, { n: 2, events: [collapsed] })).toEqual({
      ...head,
      stage: 'revoked',
      n: 2,
      reason: 'collapsed into newer, which has the same dedupe key',
      detail: { collapsed_into: 'newer' },
    });
  });

  test('still waiting, where a revoke of it was refused or was of another', () => {
    const refused = { type: 'control_outcome', control: 'revoke', status: 'already_delivered', target: ID };
    const another = { type: 'control_outcome', control: 'revoke', status: 'revoked', target: 'another' };
    const waits = { ...head, stage: 'accepted', n: 1 };
    expect(fateAfter({ n: 1, verb: 'steer' }, { n: 2, events: [refused, another] })).toEqual(waits);
  });

  test('delivered with another text than it came with, and whose', () => {
    const replaced = { ...injected, replaced_by: 'r' };
    expect(fateAfter({ n: 1, verb: 'steer' }, { n: 2, events: [replaced] })).toMatchObject({
      stage: 'delivered',
      detail: { replaced_by: 'r' },
    });
  });

  test('kept for the next run, as long as there is none', () => {
    const kept = { ...head, stage: 'accepted', n: 1, pending_for_next_run: true };
    expect(fateAfter({ n: 1, verb: 'steer', state: 'stopped' })).toEqual(kept);
    expect(fateAfter({ n: 1, verb: 'steer' }, { n: 2, state: 'failed' })).toEqual(kept);
    expect(fateAfter({ n: 1, verb: 'steer', state: 'stopped' }, { n: 2 })).toEqual({
      ...head,
      stage: 'accepted',
      n: 1,
    });
  });

  test('a command that is not delivered anywhere waits for nothing', () => {
    expect(fateAfter({ n: 1, verb: 'cancel', state: 'stopped' })).toEqual({ ...head, stage: 'accepted', n: 1 });
  });
});
