/** Deleting sessions on a real bus, with real processes: what goes, what stays, who may, and what everybody is told afterwards. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { readSeedFile } from '@coxswain/adapter-nats';
import { connect } from '@coxswain/client';
import { journalStreamOf, sessionRef, subjects } from '@coxswain/protocol';
import { afterAll, describe, expect, test, vi } from 'vitest';
import { Child, COX_MAIN, cox } from './kit/child.ts';
import { busAndHost } from './kit/fixture.ts';
import { type GuardedBus, startGuardedBus } from './kit/guarded-bus.ts';
import { endOf, eventOf, expectReplays, journalOf } from './kit/journal.ts';
import { removeScratch, scratchFolder } from './kit/scratch.ts';
import { scripted } from './kit/scripts.ts';
import { until } from './kit/until.ts';

// Many processes, some of which wait for forks that may be under way.
vi.setConfig({ testTimeout: 240_000 });
const fixture = busAndHost();
const at = () => ['--nats', fixture.bus.natsUrl];

/** A session that has read a file which is too large for its record, and ended. */
async function ended(id: string): Promise<void> {
  const root = await scratchFolder(id);
  await writeFile(join(root, 'a.txt'), 'the letter a\n'.repeat(8_000));
  const model = await scripted([{ calls: [{ tool: 'read_file', args: { path: 'a.txt' } }] }, { text: 'Done.' }]);
  await fixture.bus.command(id, 'start', { prompt: 'Do it.', model, root });
  await endOf(fixture.bus, id);
}

test('cox session delete leaves a tombstone, forks and other sessions whole, and everybody is told', async () => {
  await ended('origin');
  await ended('other');
  expect((await cox(['session', 'fork', 'origin', '--id', 'copy', '--detach', ...at()])).code).toBe(0);
  const copied = await journalOf(fixture.bus, 'copy');

  const asked = await cox(['session', 'delete', 'origin', ...at()]);
  expect(asked.code, asked.told).toBe(2);
  expect(asked.stderr).toContain('--yes');
  const would = await cox(['session', 'delete', 'origin', '--dry-run', '--json', ...at()]);
  expect(would.json).toMatchObject([{ type: 'would_delete', session_id: 'origin' }]);

  const done = await cox(['session', 'delete', 'origin', '--yes', '--reason', 'asked for', '--json', ...at()]);
  expect(done.code, done.told).toBe(0);
  expect(done.json).toMatchObject([{ type: 'deleted', session_id: 'origin', tenant: 'default' }]);

  await Promise.all(
    ['show', 'replay', 'export', 'watch', 'fork', 'usage'].map(async (command) => {
      const told = await cox(['session', command, 'origin', ...at()]);
      expect([command, told.code, told.stdout]).toEqual([command, 1, '']);
      expect(told.stderr, command).toMatch(
        /session_deleted: .*the session origin was deleted at 20.* by .*\(asked for\)/,
      );
    }),
  );
  const again = await cox(['run', 'again', '--id', 'origin', '--model', await scripted([{ text: 'no' }]), ...at()]);
  expect(again.stderr).toContain('session_deleted');
  const steered = await cox(['steer', 'origin', 'still there?', ...at()]);
  expect([steered.code, steered.stderr]).toEqual([1, expect.stringContaining('session_deleted')]);

  const listed = await cox(['session', 'list', ...at()]);
  expect(listed.stdout).not.toContain('origin');
  expect(listed.stderr).toContain('1 deleted session: list with --deleted');
  expect((await cox(['session', 'list', '--deleted', ...at()])).stdout).toMatch(/^origin +deleted .*\(asked for\)$/m);

  expect((await journalOf(fixture.bus, 'copy')).records.length).toBe(copied.records.length);
  for (const id of ['copy', 'other']) await expectReplays(fixture.bus, await journalOf(fixture.bus, id));
  expect((await cox(['session', 'fork', 'copy', '--id', 'copy-2', '--detach', ...at()])).code).toBe(0);
});

test('cox session delete says of each session why it is not deleted, and deletes the others', async () => {
  await ended('fine');
  const root = await scratchFolder('asks');
  const model = await scripted([{ calls: [{ tool: 'run_command', args: { command: 'true' } }] }, { text: 'Done.' }]);
  await fixture.bus.command('asks', 'start', { prompt: 'Do it.', model, root });
  await eventOf(fixture.bus, 'asks', 'approval_requested');
  const told = await cox(['session', 'delete', 'asks', 'nobody', 'fine', 'fine', '--yes', '--json', ...at()]);
  expect(told.code).toBe(1);
  expect(told.json).toMatchObject([
    {
      type: 'not_deleted',
      session_id: 'asks',
      code: 'session_busy',
      message: expect.stringContaining('cox cancel asks'),
    },
    { type: 'not_deleted', session_id: 'nobody', code: 'session_not_found' },
    { type: 'deleted', session_id: 'fine' },
  ]);
  const twice = await cox(['session', 'delete', 'fine', '--yes', ...at()]);
  expect([twice.code, twice.stderr]).toEqual([1, expect.stringContaining('session_deleted')]);
  await Promise.all(
    ['*', 'a.b', 'x'.repeat(65), '../..'].map(async (id) => {
      const hostile = await cox(['session', 'delete', 'fine', '--yes', ...at(), '--', id]);
      expect([hostile.code, hostile.stderr]).toEqual([2, expect.stringContaining('invalid_id')]);
    }),
  );
  await fixture.bus.command('asks', 'cancel', {});
  await endOf(fixture.bus, 'asks');
  expect((await cox(['session', 'delete', 'asks', '--yes', ...at()])).code).toBe(0);
});

test('cox admin retention deletes what is past its time, tenant by tenant, and says first what it would', async () => {
  await ended('old');
  const keep = ['--keep', '365d', '--keep', 'default=0h'];
  const would = await cox(['admin', 'retention', ...keep, '--dry-run', '--json', ...at()]);
  expect(would.json).toContainEqual(expect.objectContaining({ type: 'would_delete', session_id: 'old' }));
  expect((await cox(['admin', 'retention', '--keep', '365d', '--json', ...at()])).json).toMatchObject([
    { type: 'swept', sessions: 0 },
  ]);
  const unsure = await cox(['admin', 'retention', ...keep, ...at()]);
  expect([unsure.code, unsure.stderr]).toEqual([2, expect.stringContaining('--keep default=0h')]);
  const swept = await cox(['admin', 'retention', ...keep, '--yes', '--json', ...at()]);
  expect(swept.json).toContainEqual(expect.objectContaining({ type: 'deleted', session_id: 'old' }));
  // Files are kept for a day in any case.
  expect(swept.json.at(-1)).toMatchObject({ type: 'swept', files: { deleted: 0 } });
  for (const time of ['never', '90m', '1d12h', 'default=90s', '-1d', '1.5h']) {
    const refused = await cox(['admin', 'retention', `--keep=${time}`, ...at()]);
    expect([time, refused.code, refused.stderr]).toEqual([time, 2, expect.stringContaining('--keep takes hours')]);
  }
});

describe('on a bus where every program has a key of its own', () => {
  let bus: GuardedBus | undefined;
  afterAll(async () => {
    await bus?.stop();
    await removeScratch();
  });

  test('the admin deletes, of any tenant; hosts and a tenant’s users do not', async () => {
    bus = await startGuardedBus(['default', 'red']);
    const host = await bus.startHost();
    try {
      const client = await bus.client('operator', 'red');
      const model = await scripted([{ text: 'Done.' }]);
      const session = await client.startSession({ prompt: 'Go.', model }, { sessionId: 'theirs', wait: 'accepted' });
      await session.result();
      for (const [role, tenant, code, says] of [
        ['operator', 'red', 1, 'not_permitted'],
        ['gateway', 'red', 1, 'not_permitted'],
        ['operator', 'default', 2, 'the key is one of the tenant default'],
        ['host', undefined, 1, 'not_permitted'],
      ] as const) {
        const told = await cox(['session', 'delete', 'theirs', '--tenant', 'red', '--yes'], {
          env: bus.env(role, tenant),
        });
        expect([role, told.code, told.stderr]).toEqual([role, code, expect.stringContaining(says)]);
      }
      expect((await session.newest())?.state).toBe('stopped');
      const elsewhere = await cox(['session', 'delete', 'theirs', '--yes'], { env: bus.env('admin') });
      expect(elsewhere.stderr).toContain('session_not_found');
      const done = await cox(['session', 'delete', 'theirs', '--tenant', 'red', '--yes'], { env: bus.env('admin') });
      expect(done.code, done.told).toBe(0);
      await expect(session.state()).rejects.toMatchObject({ code: 'session_deleted' });
      await expect(session.prompt('On.', { wait: 'accepted' })).rejects.toMatchObject({ code: 'session_deleted' });
    } finally {
      await host.terminate();
    }
  });

  test('a retention job with a key of its own purges what a command deletes, and its receipt says within what time', async () => {
    bus ??= await startGuardedBus(['default', 'red']);
    const host = await bus.startHost();
    const credentials = await readSeedFile(bus.file('admin'));
    const admin = await connect({ servers: bus.url, ...credentials, tenant: 'red' });
    const records = async (id: string) => {
      const ref = sessionRef(id, 'red');
      const asked = { subjects_filter: subjects.journal(ref) };
      const stream = `$JS.API.STREAM.INFO.${journalStreamOf(id)}`;
      const info = (await (await bus?.as('admin'))?.request(stream, JSON.stringify(asked)))?.json<{
        state: { subjects?: Record<string, number> };
      }>();
      return info?.state.subjects?.[subjects.journal(ref)];
    };
    const deleted = async (id: string) => {
      const model = await scripted([{ text: 'Done.' }]);
      const session = await admin.startSession({ prompt: 'Go.', model }, { sessionId: id, wait: 'accepted' });
      await session.result();
      return (await session.delete('asked for', { wait: 'accepted' })).receipt;
    };
    let retention: Child | undefined;
    try {
      expect(await deleted('before')).toMatchObject({ stage: 'accepted', detail: { purge: null } });
      expect(await records('before')).toBeGreaterThan(1);
      retention = new Child(COX_MAIN, ['serve', 'retention', '--json'], { env: bus.env('retention') });
      await retention.says('"type":"ready"');
      expect(await deleted('after')).toMatchObject({
        stage: 'accepted',
        message: expect.stringContaining('purged within 60 s'),
        detail: { purge: { recordsWithinMs: 60_000, filesWithinMs: 172_800_000 } },
      });
      for (const id of ['before', 'after']) await until(`the purge of ${id}`, async () => (await records(id)) === 1);
      const doctor = await cox(['doctor', '--nats', bus.url, '--json'], { env: bus.env('admin') });
      expect(doctor.json).toContainEqual(expect.objectContaining({ name: 'retention', status: 'ok' }));
      expect((await bus.refusals()).filter((line) => line.includes('retention'))).toEqual([]);

      const refused = await cox(['serve', 'retention', '--nats', bus.url], { env: bus.env('host') });
      expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('give the key of retention')]);
    } finally {
      await retention?.terminate();
      await admin.close();
      await host.terminate();
    }
  });
});
