/** A bus on which every program has a key of its own, with the least rights: everything works, and nothing is refused. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Child, COX_MAIN, cox } from './kit/child.ts';
import type { GuardedBus } from './kit/guarded-bus.ts';
import { guardedBusAndHost } from './kit/guarded-fixture.ts';
import { policyFile } from './kit/hook-service.ts';
import { scratchFolder } from './kit/scratch.ts';
import { scripted } from './kit/scripts.ts';

const fixture = guardedBusAndHost();

async function coxAs(role: Parameters<GuardedBus['env']>[0], ...args: string[]) {
  const ended = await cox(args, { env: fixture.bus.env(role) });
  return { code: ended.code, out: ended.stdout, told: ended.told };
}

test('a session runs, hooks answer, the steerer steers, the approver approves, the viewer reads', async () => {
  const policy = await policyFile(`
    import { defineHooks } from '@coxswain/client';
    export default defineHooks({
      PreToolUse: {
        pattern: 'read_*',
        async handler({ tool }, { transcript, feedback }) {
          feedback(\`asked about \${tool.name} after \${(await transcript()).length} messages\`);
        },
      },
    });
  `);
  const service = new Child(COX_MAIN, ['serve', 'hooks', policy, '--name', 'policy', '--json'], {
    env: fixture.bus.env('hooks'),
  });
  await service.says('"type":"ready"');
  await fixture.host.says(/"service":"policy".*hooks are registered/);

  const root = await scratchFolder('root');
  // Longer than a record takes: it lies in the object store.
  await writeFile(join(root, 'a.txt'), 'the letter a\n'.repeat(8_000));
  const operator = await fixture.bus.client('operator');
  const session = await operator.startSession(
    {
      prompt: 'Go.',
      model: await scripted([
        { calls: [{ tool: 'read_file', args: { path: 'a.txt' } }] },
        { calls: [{ tool: 'list_files', args: {} }] },
        { text: 'Done.' },
      ]),
      root,
      permissions: {
        rules: [
          { tool: 'list_files', action: 'ask' },
          { tool: '*', action: 'allow' },
        ],
      },
    },
    { wait: 'accepted' },
  );
  const viewer = await fixture.bus.client('viewer');
  const seen: string[] = [];
  for await (const record of viewer.session(session.id).records()) {
    seen.push(...record.events.map(({ type }) => type));
    if (seen.includes('approval_requested')) break;
  }
  expect(seen).toContain('hook_returned');

  expect(await coxAs('steerer', 'steer', session.id, 'and be brief', '--wait', 'accepted')).toMatchObject({ code: 0 });
  expect(await coxAs('steerer', 'approve', session.id)).not.toMatchObject({ code: 0 });
  expect(await coxAs('approver', 'approve', session.id)).toMatchObject({ code: 0 });
  const result = await viewer.session(session.id).result();
  expect(result).toMatchObject({ stopReason: 'end_turn' });
  expect(await coxAs('viewer', 'session', 'list')).toMatchObject({ code: 0, out: expect.stringContaining(session.id) });
  expect(await coxAs('viewer', 'session', 'show', session.id)).toMatchObject({ code: 0 });
  expect(await coxAs('viewer', 'session', 'replay', session.id)).toMatchObject({ code: 0 });
  expect(await coxAs('operator', 'hook', 'list')).toMatchObject({
    code: 0,
    out: expect.stringContaining('policy  1 instance'),
  });
  expect(await service.terminate()).toMatchObject({ code: 0 });
  // But for what clients look for first, and the approval, nobody asks for more than it may.
  const refused = (await fixture.bus.refusals()).filter(
    (line) => !/STREAM.(INFO|MSG.GET).COX_|session\.\w+\.approve/.test(line),
  );
  expect(refused).toEqual([]);
});
