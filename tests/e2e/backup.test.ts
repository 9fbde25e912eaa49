/** A bus is backed up while it runs and restored on a server without its streams, as the guide on operations says. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { BLOBS_STREAM, JOURNAL_STREAMS, STREAMS } from '@coxswain/protocol';
import { createInbox, type NatsConnection } from '@nats-io/transport-node';
import { expect, onTestFinished, test } from 'vitest';
import { startOwnBus } from './kit/bus.ts';
import { cox } from './kit/child.ts';
import { endOf, eventOf, expectReplays, journalOf } from './kit/journal.ts';
import { removeScratch, scratchFolder } from './kit/scratch.ts';
import { scripted } from './kit/scripts.ts';
import { startHost } from './kit/sessions-host.ts';

const BACKED_UP = [...JOURNAL_STREAMS, STREAMS.timers, `KV_${STREAMS.active}`, `KV_${STREAMS.registry}`, BLOBS_STREAM];

/** A stream as the server gives it away, piece by piece: what `nats stream backup` keeps. */
interface Backup {
  readonly about: { readonly config: object; readonly state: object };
  readonly pieces: readonly Uint8Array[];
}

async function backUp(nc: NatsConnection, stream: string): Promise<Backup> {
  const deliver_subject = createInbox();
  const pieces: Uint8Array[] = [];
  const subscription = nc.subscribe(deliver_subject);
  const asked = await nc.request(
    `$JS.API.STREAM.SNAPSHOT.${stream}`,
    JSON.stringify({ deliver_subject, no_consumers: true }),
    { timeout: 10_000 },
  );
  const { config, state, error } = asked.json() as Backup['about'] & { error?: { description: string } };
  if (error) throw new Error(error.description);
  for await (const message of subscription) {
    message.respond();
    if (message.data.length === 0) break;
    pieces.push(message.data);
  }
  return { about: { config, state }, pieces };
}

async function restore(nc: NatsConnection, stream: string, { about, pieces }: Backup): Promise<void> {
  const ask = async (subject: string, payload: Uint8Array | string) => {
    const answer = await nc.request(subject, payload, { timeout: 10_000 });
    const said = (answer.data.length > 0 ? answer.json() : {}) as {
      error?: { description: string };
      deliver_subject?: string;
    };
    if (said.error) throw new Error(`${stream}: ${said.error.description}`);
    return said;
  };
  const { deliver_subject } = await ask(`$JS.API.STREAM.RESTORE.${stream}`, JSON.stringify(about));
  for (const piece of pieces) await ask(deliver_subject as string, piece);
  await ask(deliver_subject as string, '');
}

async function deleteStreams(nc: NatsConnection): Promise<void> {
  const listed = await nc.request('$JS.API.STREAM.NAMES', '', { timeout: 10_000 });
  for (const stream of (listed.json() as { streams: string[] }).streams)
    await nc.request(`$JS.API.STREAM.DELETE.${stream}`, '', { timeout: 10_000 });
}

test('restored sessions replay, continue and wake; a paused persona stays paused', async () => {
  const bus = await startOwnBus();
  onTestFinished(async () => {
    await bus.stop();
    await removeScratch();
  });
  const first = await startHost(bus);
  const root = await scratchFolder('root');
  await writeFile(join(root, 'a.txt'), 'the letter a\n'.repeat(8_000));
  const reads = { calls: [{ tool: 'read_file', args: { path: 'a.txt' } }] };
  await bus.command('done', 'start', {
    prompt: 'Go.',
    root,
    model: await scripted([reads, { text: 'Done.' }, { text: 'More.' }]),
  });
  await endOf(bus, 'done');
  const asks = { calls: [{ tool: 'run_command', args: { command: 'true' } }] };
  await bus.command('parked', 'start', { prompt: 'Go.', root, model: await scripted([asks, { text: 'Done.' }]) });
  await eventOf(bus, 'parked', 'approval_requested');
  await bus.command('sleeps', 'start', {
    prompt: 'Go.',
    root,
    model: await scripted([asks, { text: 'Done.' }, { text: 'Awake.' }]),
  });
  await eventOf(bus, 'sleeps', 'approval_requested');
  await bus.command('sleeps', 'suspend', { for_ms: 8_000 });
  await bus.command('sleeps', 'approve', { call_id: 'c1_1', decision: 'allow' });
  await eventOf(bus, 'sleeps', 'suspended');
  const before = await journalOf(bus, 'done');
  // A pause is in the registry alone. The persona is another one than that of the sessions here.
  const onBus = ['--nats', bus.natsUrl];
  const personas = await scratchFolder('personas');
  await mkdir(join(personas, 'personas'));
  await writeFile(join(personas, 'personas/quiet.yaml'), 'name: quiet\n');
  expect((await cox(['persona', 'pause', 'quiet', ...onBus], { cwd: personas })).code).toBe(0);

  const backups = new Map<string, Backup>();
  for (const stream of BACKED_UP) backups.set(stream, await backUp(bus.bare, stream));
  await first.terminate();
  await deleteStreams(bus.bare);
  for (const [stream, backup] of backups) await restore(bus.bare, stream, backup);
  expect((await cox(['admin', 'streams', '--nats', bus.natsUrl])).code).toBe(0);
  const second = await startHost(bus);
  onTestFinished(() => second.kill());

  expect((await journalOf(bus, 'done')).bytes).toEqual(before.bytes);
  expect((await cox(['persona', 'list', '--served', ...onBus])).stdout).toContain('quiet');
  await expectReplays(bus, await journalOf(bus, 'done'));
  // A new command stream begins at its first place again: that is not taken for what the journal has read already.
  await bus.command('done', 'prompt', 'And more.');
  await endOf(bus, 'done', 2);
  await bus.command('parked', 'approve', { call_id: 'c1_1', decision: 'allow' });
  await endOf(bus, 'parked');
  await eventOf(bus, 'sleeps', 'resumed');
  await endOf(bus, 'sleeps');
}, 180_000);
