/** A session whose queues are full, on a server with the default max_payload and a key for each role. */
import { BOUNDS } from '@coxswain/protocol';
import { afterAll, expect, test } from 'vitest';
import { type ChatProvider, startChatProvider } from './kit/chat-provider.ts';
import { guardedBusAndHost } from './kit/guarded-fixture.ts';
import { until } from './kit/until.ts';

/** As many records as precede a snapshot. */
const STEERS = 32;
const fixture = guardedBusAndHost();
let provider: ChatProvider | undefined;
afterAll(async () => {
  await provider?.stop();
});

test('get_state answers with 1 MiB of queued steers, from memory and from the snapshot; one byte more is pending_full', async () => {
  const { bus } = fixture;
  provider = await startChatProvider(() => ({ text: 'Half a', before_end: new Promise(() => undefined) }));
  const operator = await bus.client('operator');
  const session = await operator.startSession({
    prompt: 'Go.',
    model: 'openai-compatible/x',
    baseUrl: provider.url,
  });
  await provider.request(1);
  const steerer = (await bus.client('steerer')).session(session.id);
  const body = 'é'.repeat(BOUNDS.pendingInjectionsMaxBytes / STEERS / 2);
  for (let i = 0; i < STEERS; i++) await steerer.steer(body, { wait: 'accepted' });
  await expect(steerer.steer('x', { wait: 'accepted' })).rejects.toMatchObject({ code: 'pending_full' });

  const full = await steerer.state();
  expect(full.pending.map((one) => one.body)).toEqual(Array.from({ length: STEERS }, () => body));

  const admin = await bus.as('admin');
  await until('a snapshot in the object store', async () => {
    const last = JSON.stringify({ last_by_subj: 'cox-snap.>' });
    const answer = await admin.request('$JS.API.STREAM.MSG.GET.COX_SNAPSHOTS', last);
    const { message } = answer.json() as { message?: { hdrs?: string } };
    return Buffer.from(message?.hdrs ?? '', 'base64').includes('Cox-Snapshot-Blob') || null;
  });
  await fixture.host.kill();
  fixture.host = await bus.startHost();
  const viewer = (await bus.client('viewer')).session(session.id);
  expect(await viewer.state()).toMatchObject({ pending: full.pending });
});
