/** The sessions service as a process of its own: told to stop it drains, and its successor goes on where it was. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { type ChatProvider, startChatProvider } from './kit/chat-provider.ts';
import { Child, SESSIONS_MAIN } from './kit/child.ts';
import { busAndHost } from './kit/fixture.ts';
import { endOf, journalOf } from './kit/journal.ts';
import { scratchFolder } from './kit/scratch.ts';
import { startHost } from './kit/sessions-host.ts';
import { until } from './kit/until.ts';
import { waitCommand } from './kit/wait-command.ts';

const fixture = busAndHost();
const providers: ChatProvider[] = [];
afterEach(async () => {
  await Promise.all(providers.splice(0).map((provider) => provider.stop()));
});

const permissions = { rules: [{ tool: '*', action: 'allow' }] };

test('a call under way may end, and its end is recorded, before SIGTERM ends the host', async () => {
  const { bus } = fixture;
  const root = await scratchFolder('drain');
  const model = await startChatProvider((_request, number) =>
    number === 1
      ? {
          calls: [
            {
              id: 'slow',
              tool: 'run_command',
              args: { command: `echo began >> ran; ${waitCommand('gate')}; echo ended >> ran` },
            },
          ],
        }
      : { text: 'Done.' },
  );
  providers.push(model);
  const start = { prompt: 'Go.', model: 'openai-compatible/x', base_url: model.url, root, permissions };
  await bus.command('drain', 'start', start);
  await until('the call to run', () => readFile(join(root, 'ran'), 'utf8').catch(() => null));

  const before = fixture.host;
  before.process.kill('SIGTERM');
  await before.says('session host stops');
  // Sent to a host that takes nothing more: it is stored for the next one.
  await bus.command('drain', 'steer', 'for your successor', { 'Cox-Command-Id': 'left' });
  await writeFile(join(root, 'gate'), '');
  expect(await before.exited).toEqual({ code: 0, signal: null });

  const left = await journalOf(bus, 'drain');
  expect(left.of('call_ended')).toMatchObject([{ call_id: 'slow', status: 'ok' }]);
  expect(left.records.map(({ epoch }) => epoch)).toEqual(left.records.map(() => 1));
  expect(left.of('agent_end')).toEqual([]);
  expect(left.of('steering_received')).toEqual([]);
  // No new model call: that is the successor's.
  expect(model.requests).toHaveLength(1);

  fixture.host = await startHost(bus);
  const journal = await endOf(bus, 'drain');
  expect(journal.of('owned')).toHaveLength(1);
  expect(journal.of('call_ended').map(({ status }) => status)).toEqual(['ok']);
  expect(journal.of('message_injected')).toMatchObject([{ command_id: 'left' }]);
  expect(await readFile(join(root, 'ran'), 'utf8')).toBe('began\nended\n');
  expect(model.requests.at(-1)?.text).toContain('for your successor');
});

test('a model call under way is left, and made again by the successor', async () => {
  const { bus } = fixture;
  let hang = true;
  const forever = new Promise(() => undefined);
  const model = await startChatProvider(() => (hang ? { text: 'Half a', before_end: forever } : { text: 'Whole.' }));
  providers.push(model);
  await bus.command('again', 'start', { prompt: 'Say it.', model: 'openai-compatible/x', base_url: model.url });
  await model.request(1);
  expect(await fixture.host.terminate()).toEqual({ code: 0, signal: null });
  hang = false;
  fixture.host = await startHost(bus);
  const journal = await endOf(bus, 'again');
  expect(model.requests).toHaveLength(2);
  expect(model.requests[1]?.messages).toEqual(model.requests[0]?.messages);
  expect(journal.of('message_complete')).toMatchObject([{ message: { content: [{ text: 'Whole.' }] } }]);
  expect(journal.of('agent_end')).toMatchObject([{ stop_reason: 'end_turn', turns: 1 }]);
});

test('while no host is there commands are stored, and the next one takes them up in order', async () => {
  const { bus } = fixture;
  const root = await scratchFolder('away');
  const model = await startChatProvider(() => ({ text: 'Done.' }));
  providers.push(model);
  expect((await fixture.host.terminate('SIGINT')).code).toBe(0);
  const receipts = bus.receipts();
  const head = (id: string) => ({ 'Cox-Receipt-To': receipts.subject, 'Cox-Command-Id': id });
  const start = { prompt: 'Go.', model: 'openai-compatible/x', base_url: model.url, root };
  await bus.command('away', 'start', start, head('a'));
  await bus.command('away', 'start', start, head('b'));
  await bus.command('away', 'followup', 'and then', head('c'));
  expect(receipts.all).toEqual([]);
  fixture.host = await startHost(bus);
  await receipts.at('a', 'accepted');
  expect(await receipts.at('b', 'rejected')).toMatchObject({ code: 'session_busy' });
  expect(await receipts.at('c', 'delivered')).toMatchObject({ seam: 'steering_check' });
  await endOf(bus, 'away');
  expect(model.requests).toHaveLength(2);
});

test('without a bus it says what is missing', async () => {
  const { stateDir } = fixture.bus;
  const nameless = new Child(SESSIONS_MAIN, [], { env: { COX_STATE_DIR: stateDir } });
  expect((await nameless.exited).code).toBe(2);
  expect(nameless.stderr).toMatch(/NATS_URL/);
  const nowhere = new Child(SESSIONS_MAIN, [], { env: { COX_STATE_DIR: stateDir, NATS_URL: 'nats://127.0.0.1:9' } });
  expect((await nowhere.exited).code).toBe(1);
  expect(nowhere.told).toMatch(/127\.0\.0\.1:9|refused/i);
});
