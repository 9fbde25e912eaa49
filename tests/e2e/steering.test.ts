/** Steering by a client that knows nothing of Coxswain: a subject, a body, and what stands in the model's next prompt. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import {
  type ChatAnswer,
  type ChatProvider,
  type ChatRequest,
  contentOf,
  startChatProvider,
} from './kit/chat-provider.ts';
import { busAndHost } from './kit/fixture.ts';
import { endOf, eventOf, journalOf } from './kit/journal.ts';
import { scratchFolder } from './kit/scratch.ts';
import { until } from './kit/until.ts';
import { waitCommand } from './kit/wait-command.ts';

const fixture = busAndHost();
const providers: ChatProvider[] = [];
afterEach(async () => {
  await Promise.all(providers.splice(0).map((provider) => provider.stop()));
});

async function provider(answer: (request: ChatRequest, number: number) => ChatAnswer): Promise<ChatProvider> {
  const started = await startChatProvider(answer);
  providers.push(started);
  return started;
}

/** Starts a session over the bare bus. `run_command` runs without asking. */
async function start(id: string, model: ChatProvider, root: string): Promise<void> {
  await fixture.bus.command(id, 'start', {
    prompt: 'Do it.',
    model: 'openai-compatible/x',
    base_url: model.url,
    root,
    permissions: { rules: [{ tool: '*', action: 'allow' }] },
  });
}

/** A call that runs until the test lets it go, by making a file. */
function waiting(id: string, gate: string) {
  const command = `echo ran-${id} >> ran; ${waitCommand(gate)}; echo ${id} is done`;
  return { id, tool: 'run_command', args: { command } };
}

function openGate(gate: string): Promise<void> {
  return writeFile(gate, '');
}

/** What a checkpoint did, without the passes that did nothing. */
async function deliveries(id: string) {
  const { of } = await journalOf(fixture.bus, id);
  return of('loop_checkpoint').filter(({ delivered, dispatch_skipped }) => delivered > 0 || dispatch_skipped);
}

test('plain text while a batch runs stands in the next prompt, after the results of the batch', async () => {
  const { bus } = fixture;
  const root = await scratchFolder('steer');
  const gate = join(root, 'gate');
  const model = await provider((_request, number) =>
    number === 1 ? { calls: [waiting('a', gate), waiting('b', gate)] } : { text: 'So be it.' },
  );
  const receipts = bus.receipts();
  await start('plain', model, root);
  await until('both calls to run', async () => {
    const ran = await readFile(join(root, 'ran'), 'utf8').catch(() => '');
    return ran.includes('ran-a') && ran.includes('ran-b');
  });

  const ack = await bus.command('plain', 'steer', 'try a different approach', {
    'Cox-Receipt-To': receipts.subject,
    'Cox-Command-Id': 'by-hand',
  });
  expect(ack.stream).toBe('COX_COMMANDS');
  const accepted = await receipts.at('by-hand', 'accepted');
  // It waits for the batch, which waits for us: nothing can have been delivered yet.
  expect(receipts.all.map(({ stage }) => stage)).toEqual(['accepted']);
  await openGate(gate);
  const delivered = await receipts.at('by-hand', 'delivered');
  expect(delivered).toMatchObject({ seam: 'post_tool_dispatch', turn: 1, session_id: 'plain' });
  expect(delivered.n).toBeGreaterThan(accepted.n as number);

  const { messages } = await model.request(2);
  expect(messages.map(({ role }) => role).slice(-5)).toEqual(['user', 'assistant', 'tool', 'tool', 'user']);
  expect(messages.slice(-3, -1).map(contentOf).join()).toMatch(/a is done[\s\S]*b is done/);
  expect(contentOf(messages.at(-1) as never)).toBe('try a different approach');

  const journal = await endOf(bus, 'plain');
  expect(await deliveries('plain')).toMatchObject([
    { kind: 'post_tool_dispatch', iteration: 1, delivered: 1, delivered_ids: ['by-hand'], dispatch_skipped: false },
  ]);
  // The receipt names the record in which it stands in the transcript.
  expect(journal.of('message_injected')).toMatchObject([{ command_id: 'by-hand', n: delivered.n, origin: 'steer' }]);
});

test('an interrupt while the answer streams stops the tools before they fire', async () => {
  const { bus } = fixture;
  const root = await scratchFolder('stop');
  let goOn: () => void = () => undefined;
  const streamed = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  const call = (id: string) => ({ id, tool: 'run_command', args: { command: `echo ran-${id} >> ran` } });
  const model = await provider((_request, number) =>
    number === 1
      ? { text: 'I am going to', calls: [call('a'), call('b'), call('c')], before_end: streamed }
      : { text: 'As you say.' },
  );
  const receipts = bus.receipts();
  await start('interrupt', model, root);
  await model.request(1);
  await bus.command(
    'interrupt',
    'steer',
    { body: 'stop, the other file', mode: 'interrupt_immediate' },
    { 'Cox-Receipt-To': receipts.subject, 'Cox-Command-Id': 'halt' },
  );
  await receipts.at('halt', 'accepted');
  goOn();
  expect(await receipts.at('halt', 'delivered')).toMatchObject({ seam: 'pre_tool_dispatch', turn: 1 });

  const journal = await endOf(bus, 'interrupt');
  expect(journal.of('call_started')).toEqual([]);
  await expect(readFile(join(root, 'ran'))).rejects.toThrow('ENOENT');
  expect(journal.of('call_ended').map(({ call_id, status }) => `${call_id} ${status}`)).toEqual([
    'a skipped',
    'b skipped',
    'c skipped',
  ]);
  const passes = journal.of('loop_checkpoint').filter(({ dispatch_skipped }) => dispatch_skipped);
  expect(passes).toMatchObject([
    { kind: 'pre_tool_dispatch', delivered: 1, delivered_ids: ['halt'], skipped_call_ids: ['a', 'b', 'c'] },
  ]);
  // The batch was skipped whole: there is no pass after a batch that did not run.
  const kinds = journal.of('loop_checkpoint').map(({ iteration, kind }) => `${iteration} ${kind}`);
  expect(kinds).not.toContain('1 post_tool_dispatch');
  expect(journal.of('turn_end')[0]).toMatchObject({ dispatch_skipped: true, skip_reason: 'interrupt_immediate' });

  const { messages } = await model.request(2);
  expect(messages.slice(-5).map(({ role }) => role)).toEqual(['assistant', 'tool', 'tool', 'tool', 'user']);
  expect(messages.slice(-4, -1).map(({ tool_call_id }) => tool_call_id)).toEqual(['a', 'b', 'c']);
  expect(contentOf(messages.at(-1) as never)).toBe('stop, the other file');
});

test('audit_only causes no model call, and lands in the transcript and in no request, be it of the next run or of a compaction', async () => {
  const { bus } = fixture;
  let release: (value?: unknown) => void = () => {};
  const accepted = new Promise((resolve) => {
    release = resolve;
  });
  // The second run begins with a prompt that fills the window, so that what came before is summarised.
  const model = await provider(({ text }, number) =>
    text.includes('Write the summary now.')
      ? { text: 'We said hello.' }
      : { text: `Answer ${number}.`, prompt_tokens: 280, ...(number === 1 ? { before_end: accepted } : {}) },
  );
  const receipts = bus.receipts();
  await bus.command('audit', 'start', {
    prompt: 'Do it.',
    persona: {
      name: 'clerk',
      model: { name: 'openai-compatible/x', base_url: model.url, context_window: 300 },
      compaction: { keep_turns: 0, reserve: 50 },
      tools: [],
    },
    root: await scratchFolder('audit'),
  });
  await model.request(1);
  const said = { 'Cox-Receipt-To': receipts.subject };
  await bus.command('audit', 'steer', { body: 'ticket 4711 for the record', mode: 'audit_only', id: 'note' }, said);
  await bus.command('audit', 'remind', { body: 'file 4712 too', mode: 'audit_only', id: 'memo' }, said);
  await receipts.at('note', 'accepted');
  await receipts.at('memo', 'accepted');
  release();
  expect(await receipts.at('note', 'delivered')).toMatchObject({ seam: 'loop_exit' });
  const first = await endOf(bus, 'audit');
  expect(model.requests).toHaveLength(1);
  expect(first.of('loop_checkpoint').at(-1)).toMatchObject({
    kind: 'loop_exit',
    delivered: 2,
    delivered_ids: ['note', 'memo'],
  });
  expect(first.of('message_injected')).toMatchObject([
    { command_id: 'note', audit_only: true, seam: 'loop_exit', message: { role: 'user' } },
  ]);
  expect(first.of('reminder_fired')).toMatchObject([{ command_id: 'memo', audit_only: true, seam: 'loop_exit' }]);

  await bus.command('audit', 'prompt', 'And again?');
  await eventOf(bus, 'audit', 'agent_end', ({ run }) => run === 2);
  const both = await journalOf(bus, 'audit');
  expect(both.of('compaction_done')).toMatchObject([{ strategy: 'summary', summary: 'We said hello.' }]);
  expect(model.requests).toHaveLength(3);
  for (const { text } of model.requests) expect(text).not.toMatch(/471[12]|ticket|for the record/);
});

test('a reminder is never taken for a user message, and a follow-up continues the run in place', async () => {
  const { bus } = fixture;
  const root = await scratchFolder('remind');
  const gate = join(root, 'gate');
  const model = await provider((_request, number) =>
    number === 1 ? { calls: [waiting('a', gate)] } : { text: `Answer ${number}.` },
  );
  const receipts = bus.receipts();
  await start('remind', model, root);
  await model.request(1);
  const head = { 'Cox-Receipt-To': receipts.subject };
  await bus.command('remind', 'followup', 'then the second thing', { ...head, 'Cox-Command-Id': 'next' });
  await bus.command('remind', 'remind', 'mind the tests', { ...head, 'Cox-Command-Id': 'mind' });
  await receipts.at('mind', 'accepted');
  await openGate(gate);
  expect(await receipts.at('mind', 'delivered')).toMatchObject({ seam: 'post_tool_dispatch', turn: 1 });
  expect(await receipts.at('next', 'delivered')).toMatchObject({ seam: 'steering_check', turn: 2 });

  const journal = await endOf(bus, 'remind');
  expect(journal.of('agent_start')).toHaveLength(1);
  expect(journal.of('turn_start').map(({ turn }) => turn)).toEqual([1, 2, 3]);
  const second = await model.request(2);
  expect(second.text).toContain('<system-reminder>');
  expect(second.text).toContain('mind the tests');
  expect(second.text).not.toContain('then the second thing');
  const third = await model.request(3);
  expect(contentOf(third.messages.at(-1) as never)).toBe('then the second thing');
});

test('whoever is not heard is told so: taken back, collapsed, or kept when the run is cancelled', async () => {
  const { bus } = fixture;
  const root = await scratchFolder('fates');
  const model = await provider(() => ({ calls: [waiting('a', join(root, 'never'))] }));
  const receipts = bus.receipts();
  await start('fates', model, root);
  await eventOf(bus, 'fates', 'call_started');
  const send = (id: string, verb: string, body: object) =>
    bus.command('fates', verb, body, { 'Cox-Receipt-To': receipts.subject, 'Cox-Command-Id': id });
  await send('taken', 'steer', { body: 'north' });
  await send('older', 'steer', { body: 'east', dedupe_key: 'course' });
  await send('newer', 'steer', { body: 'south', dedupe_key: 'course' });
  await send('next', 'followup', { body: 'then moor' });
  await send('revoke', 'revoke', { command_id: 'taken', actor: 'ada' });
  expect(await receipts.at('taken', 'revoked')).toMatchObject({ reason: 'revoked by ada' });
  expect(await receipts.at('older', 'revoked')).toMatchObject({ detail: { collapsed_into: 'newer' } });
  await send('cancel', 'cancel', {});

  const journal = await endOf(bus, 'fates');
  expect(journal.of('agent_end')).toMatchObject([{ stop_reason: 'cancelled', pending: 2 }]);
  const kept = () => receipts.all.filter((receipt) => receipt.pending_for_next_run);
  await until('both to be told that they are kept', () => kept().length === 2);
  expect(kept()).toMatchObject([
    { command_id: 'newer', stage: 'accepted', n: journal.of('agent_end')[0]?.n },
    { command_id: 'next', stage: 'accepted', n: journal.of('agent_end')[0]?.n },
  ]);
  expect(receipts.all.filter(({ stage }) => stage === 'delivered')).toEqual([]);
  expect(journal.of('control_outcome')).toMatchObject([
    { control: 'revoke', target: 'taken', status: 'revoked', actor: { name: 'ada', verified: false } },
    { control: 'cancel', target: 'fates', status: 'cancelled' },
  ]);
});

test('what comes after the end waits for the next run, and the receipt says so', async () => {
  const { bus } = fixture;
  const root = await scratchFolder('late');
  const model = await provider(() => ({ text: 'Done.' }));
  await start('late', model, root);
  await endOf(bus, 'late');
  const receipts = bus.receipts();
  await bus.command('late', 'steer', 'one more thing', {
    'Cox-Receipt-To': receipts.subject,
    'Cox-Command-Id': 'late-1',
  });
  expect(await receipts.at('late-1', 'accepted')).toMatchObject({ pending_for_next_run: true });
  // The same again, by a sender that heard no answer.
  await bus.command('late', 'steer', 'one more thing', {
    'Cox-Receipt-To': receipts.subject,
    'Cox-Command-Id': 'late-1',
  });
  await until('the second receipt', () => receipts.all.length === 2);
  await bus.command('late', 'prompt', 'Go on.');
  await endOf(bus, 'late', 2);
  expect(await receipts.at('late-1', 'delivered')).toMatchObject({ seam: 'iteration_start' });
  const { text } = await model.request(2);
  expect(text.split('one more thing')).toHaveLength(2);
});

test('an interrupt that does not wait ends the processes that run, and is heard in the next prompt', async () => {
  const { bus } = fixture;
  const root = await scratchFolder('preempt');
  // They wait for what nobody will do.
  const command = (id: string) => `echo $$ > pid-${id}; ${waitCommand('never')}`;
  const model = await provider((_request, number) =>
    number === 1
      ? { calls: ['a', 'b'].map((id) => ({ id, tool: 'run_command', args: { command: command(id) } })) }
      : { text: 'So be it.' },
  );
  await start('preempt', model, root);
  const pids = await Promise.all(
    ['a', 'b'].map((id) =>
      until(
        `${id} to run`,
        async () => Number(await readFile(join(root, `pid-${id}`), 'utf8').catch(() => '')) || null,
      ),
    ),
  );
  await bus.command('preempt', 'steer', { body: 'leave that, the other thing', preempt: true });
  const journal = await endOf(bus, 'preempt');
  expect(
    journal
      .of('call_ended')
      .map(({ call_id, status }) => [call_id, status])
      .sort(),
  ).toEqual([
    ['a', 'cancelled'],
    ['b', 'cancelled'],
  ]);
  for (const pid of pids) await until('the process to be gone', () => Promise.resolve(isGone(pid) || null));
  const { messages } = await model.request(2);
  expect(messages.slice(-3).map(({ role }) => role)).toEqual(['tool', 'tool', 'user']);
  expect(contentOf(messages.at(-1) as (typeof messages)[number])).toContain('leave that, the other thing');
  expect(journal.of('agent_end')).toMatchObject([{ stop_reason: 'end_turn', turns: 2 }]);
});

function isGone(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return false;
  } catch {
    return true;
  }
}
