/** Approvals over the bare bus: a batch of three of which two wait for a person, decided in every awkward way. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { WireReceipt } from './kit/bus.ts';
import { busAndHost } from './kit/fixture.ts';
import { endOf, eventOf, journalOf } from './kit/journal.ts';
import { scratchFolder } from './kit/scratch.ts';
import { scripted } from './kit/scripts.ts';
import { startHost } from './kit/sessions-host.ts';
import { until } from './kit/until.ts';

const fixture = busAndHost();

const run = (label: string) => ({ tool: 'run_command', args: { command: `echo ${label} >> ran` } });

/** Starts a session that asks for `first`, a look at the folder (which needs no approval) and `third`, and waits until it is parked. */
async function parked(id: string): Promise<{ ran(): Promise<string[]>; root: string }> {
  const root = await scratchFolder('approve');
  const model = await scripted([
    { text: 'Three things.', calls: [run('first'), { tool: 'list_files', args: { path: '.' } }, run('third')] },
    { text: 'All settled.' },
  ]);
  await fixture.bus.command(id, 'start', { prompt: 'Do it.', model, root });
  await eventOf(fixture.bus, id, 'call_ended', ({ call_id }) => call_id === 'c1_2');
  return {
    root,
    ran: async () => (await readFile(join(root, 'ran'), 'utf8').catch(() => '')).split('\n').filter(Boolean),
  };
}

let serial = 0;
/** Sends a decision and waits for what the session says to it. */
async function decide(id: string, body: object | string): Promise<WireReceipt> {
  const receipts = fixture.bus.receipts();
  await fixture.bus.command(id, 'approve', body, {
    'Cox-Receipt-To': receipts.subject,
    'Cox-Command-Id': `d${++serial}`,
  });
  return receipts.first();
}

const allow = (call_id: string, more: object = {}) => ({ call_id, decision: 'allow', ...more });
const deny = (call_id: string, more: object = {}) => ({ call_id, decision: 'deny', ...more });

async function statuses(id: string): Promise<Record<string, string>> {
  const ends = (await journalOf(fixture.bus, id)).of('call_ended');
  return Object.fromEntries(ends.map(({ call_id, status }) => [call_id, status]));
}

test('the one that needs no approval runs at once, each allowed one starts at once; in reverse order, twice each', async () => {
  const { bus } = fixture;
  const { ran } = await parked('reverse');
  expect(await statuses('reverse')).toEqual({ c1_2: 'ok' });
  expect(await ran()).toEqual([]);
  const { state, approvals } = await bus.client.session('reverse').state();
  expect(state).toEqual({ function_awaiting_approval: 'parked' });
  expect(approvals.map(({ callId }) => callId)).toEqual(['c1_1', 'c1_3']);

  expect(await decide('reverse', allow('c1_3', { actor: 'ann' }))).toMatchObject({ stage: 'accepted' });
  // It starts while the other still waits.
  await until('the third to run', async () => (await ran()).includes('third'));
  expect(await ran()).toEqual(['third']);
  expect(await decide('reverse', allow('c1_3'))).toMatchObject({ stage: 'rejected', code: 'already_decided' });
  expect(await decide('reverse', deny('c1_3'))).toMatchObject({
    stage: 'rejected',
    code: 'already_decided',
    message: expect.stringContaining('ann'),
  });
  expect(await decide('reverse', allow('c1_2'))).toMatchObject({ stage: 'rejected', code: 'not_pending' });
  expect(await decide('reverse', allow('c9_9'))).toMatchObject({ stage: 'rejected', code: 'call_unknown' });

  // Twice at the same moment: one decides, the other is told.
  const both = await Promise.all([decide('reverse', allow('c1_1')), decide('reverse', allow('c1_1'))]);
  expect(both.map(({ stage }) => stage).sort()).toEqual(['accepted', 'rejected']);

  const journal = await endOf(bus, 'reverse');
  expect(await ran()).toEqual(['third', 'first']);
  expect(journal.of('approval_decided').map(({ call_id, decision }) => `${call_id} ${decision}`)).toEqual([
    'c1_3 allow',
    'c1_1 allow',
  ]);
  expect(journal.of('call_ended').filter(({ status }) => status === 'ok')).toHaveLength(3);
  expect(journal.of('agent_end')).toMatchObject([{ stop_reason: 'end_turn' }]);
  expect(await decide('reverse', allow('c1_1'))).toMatchObject({ stage: 'rejected', code: 'not_pending' });
});

test('a denied call does not run, and its reason reaches the model', async () => {
  const { bus } = fixture;
  const { ran } = await parked('denied');
  expect(await decide('denied', deny('c1_3', { reason: 'not on a Friday' }))).toMatchObject({ stage: 'accepted' });
  expect(await decide('denied', deny('c1_3'))).toMatchObject({ stage: 'rejected', code: 'already_decided' });
  expect(await decide('denied', allow('c1_3'))).toMatchObject({ stage: 'rejected', code: 'already_decided' });
  expect(await decide('denied', allow('c1_1'))).toMatchObject({ stage: 'accepted' });
  const journal = await endOf(bus, 'denied');
  expect(await ran()).toEqual(['first']);
  expect(await statuses('denied')).toEqual({ c1_1: 'ok', c1_2: 'ok', c1_3: 'denied' });
  const refused = journal.of('call_ended').find(({ call_id }) => call_id === 'c1_3');
  expect(JSON.stringify(refused?.result)).toContain('not on a Friday');
  expect(refused?.denial).toMatchObject({ by: 'user', reason: 'not on a Friday' });
  expect(journal.of('call_started').map(({ call_id }) => call_id)).not.toContain('c1_3');
});

test('an interrupt while parked skips what has not run, and a late approval is rejected', async () => {
  const { bus } = fixture;
  const { ran } = await parked('late');
  expect(await decide('late', allow('c1_1'))).toMatchObject({ stage: 'accepted' });
  await eventOf(bus, 'late', 'call_ended', ({ call_id }) => call_id === 'c1_1');
  await bus.command('late', 'steer', { body: 'leave it', mode: 'interrupt' });
  const journal = await endOf(bus, 'late');
  expect(await statuses('late')).toEqual({ c1_1: 'ok', c1_2: 'ok', c1_3: 'skipped' });
  expect(journal.of('approval_decided').map(({ call_id, decision }) => `${call_id} ${decision}`)).toEqual([
    'c1_1 allow',
    'c1_3 superseded',
  ]);
  const skipping = journal.of('loop_checkpoint').filter(({ dispatch_skipped }) => dispatch_skipped);
  expect(skipping).toMatchObject([{ kind: 'pre_tool_dispatch', delivered: 1, skipped_call_ids: ['c1_3'] }]);
  expect(await decide('late', allow('c1_3'))).toMatchObject({ stage: 'rejected', code: 'not_pending' });
  expect(await ran()).toEqual(['first']);
});

test('an approval on the heels of an interrupt does not revive the call', async () => {
  const { bus } = fixture;
  const { ran } = await parked('heels');
  const receipts = bus.receipts();
  const head = (id: string) => ({ 'Cox-Receipt-To': receipts.subject, 'Cox-Command-Id': id });
  // Both are stored before either is handled, as far as a bus lets one see to that.
  await Promise.all([
    bus.command('heels', 'steer', { body: 'stop', mode: 'interrupt_immediate' }, head('halt')),
    bus.command('heels', 'approve', allow('c1_1'), head('go')),
  ]);
  expect(await receipts.at('go', 'rejected')).toMatchObject({ code: expect.stringMatching(/^[a-z_]+$/) });
  await endOf(bus, 'heels');
  expect(await ran()).toEqual([]);
  expect(await statuses('heels')).toEqual({ c1_1: 'skipped', c1_2: 'ok', c1_3: 'skipped' });
});

test('edited arguments are held against the tool, and what was approved is what runs', async () => {
  const { bus } = fixture;
  const { ran } = await parked('edited');
  expect(await decide('edited', allow('c1_1', { args: { command: 7 } }))).toMatchObject({
    stage: 'rejected',
    code: 'invalid_arguments',
    field: 'args',
  });
  expect(await decide('edited', allow('c1_1', { args: {} }))).toMatchObject({ code: 'invalid_arguments' });
  expect(await decide('edited', allow('c1_1', { args: ['x'] }))).toMatchObject({ code: 'invalid_field' });
  expect(await decide('edited', { call_id: 'c1_1', decision: 'maybe' })).toMatchObject({
    code: 'invalid_field',
    field: 'decision',
  });
  expect(await ran()).toEqual([]);
  const edited = { command: 'echo edited >> ran' };
  expect(await decide('edited', allow('c1_1', { args: edited }))).toMatchObject({ stage: 'accepted' });
  await until('the edited call to run', async () => (await ran()).length > 0);
  expect(await decide('edited', deny('c1_3'))).toMatchObject({ stage: 'accepted' });
  const journal = await endOf(bus, 'edited');
  expect(await ran()).toEqual(['edited']);
  expect(journal.of('call_started').find(({ call_id }) => call_id === 'c1_1')?.args).toEqual(edited);
});

test('a parked batch outlives its host', async () => {
  const { bus } = fixture;
  const { ran } = await parked('outlives');
  await fixture.host.kill();
  const receipts = bus.receipts();
  // Decided while nobody is there: it is stored, and counts.
  await bus.command('outlives', 'approve', allow('c1_3'), {
    'Cox-Receipt-To': receipts.subject,
    'Cox-Command-Id': 'while-away',
  });
  fixture.host = await startHost(bus);
  await receipts.at('while-away', 'accepted');
  await until('the third to run', async () => (await ran()).includes('third'));
  expect(await decide('outlives', allow('c1_1'))).toMatchObject({ stage: 'accepted' });
  const journal = await endOf(bus, 'outlives');
  expect(await ran()).toEqual(['third', 'first']);
  expect(await statuses('outlives')).toEqual({ c1_1: 'ok', c1_2: 'ok', c1_3: 'ok' });
  expect(journal.of('approval_requested')).toHaveLength(2);
});

test('cancel while parked ends the run, and the approvals with it', async () => {
  const { bus } = fixture;
  const { ran } = await parked('cancelled');
  const receipts = bus.receipts();
  await bus.command('cancelled', 'cancel', { reason: 'enough' }, { 'Cox-Receipt-To': receipts.subject });
  expect(await receipts.first()).toMatchObject({ stage: 'accepted' });
  const journal = await endOf(bus, 'cancelled');
  expect(journal.of('agent_end')).toMatchObject([{ stop_reason: 'cancelled' }]);
  expect(journal.of('approval_decided').map(({ decision }) => decision)).toEqual(['aborted', 'aborted']);
  expect(await decide('cancelled', allow('c1_1'))).toMatchObject({ stage: 'rejected', code: 'not_pending' });
  expect(await ran()).toEqual([]);
});
