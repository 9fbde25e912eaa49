/** The stream of the session index is deleted while a host runs: sessions continue, and lists are complete again. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type SessionsService, startSessionsService } from '@coxswain/sessions';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startOwnBus, type TestBus } from './kit/bus.ts';
import { removeScratch, scratchFolder } from './kit/scratch.ts';

let folder: string;
let bus: TestBus;
let service: SessionsService;

beforeAll(async () => {
  folder = await scratchFolder('lost-index');
  await writeFile(join(folder, 'quick.yaml'), 'turns: [{text: done}]');
  bus = await startOwnBus();
  const nats = { servers: bus.natsUrl };
  const stateDir = join(folder, 'state');
  service = await startSessionsService({ nats, stateDir, log: 'silent', defaultRoot: folder, trustsBus: true });
}, 180_000);

afterAll(async () => {
  await service?.stop();
  await bus?.stop();
  await removeScratch();
}, 180_000);

async function run(): Promise<string> {
  const model = `scripted/${join(folder, 'quick.yaml')}`;
  const session = await bus.client.startSession({ prompt: 'go', model, root: folder }, { wait: 'accepted' });
  expect(await session.result()).toMatchObject({ text: 'done' });
  return session.id;
}

test('sessions start without the index, and the host creates and fills it again', { timeout: 60_000 }, async () => {
  const before = await run();
  await bus.bare.request('$JS.API.STREAM.DELETE.COX_SESSIONS');
  const startedMs = performance.now();
  const meanwhile = await run();
  expect(performance.now() - startedMs).toBeLessThan(4_000);
  const found = async () => {
    const answer = await bus.bare.request('$JS.API.STREAM.INFO.COX_SESSIONS', '{"subjects_filter":">"}');
    const { state } = answer.json<{ state?: { subjects?: object } }>();
    return Object.keys(state?.subjects ?? {}).map((subject) => subject.split('.').at(-1));
  };
  await expect.poll(found, { timeout: 20_000 }).toEqual(expect.arrayContaining([before, meanwhile]));
  await expect.poll(() => service.remark(), { timeout: 20_000 }).toBeNull();
  const { sessions } = await bus.client.wire.listSessions();
  expect(sessions.map(({ session_id }) => session_id).toSorted()).toEqual([before, meanwhile].toSorted());
});
