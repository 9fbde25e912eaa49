/** What people are shown of sessions that wait for them or for a persona, and as whom their decisions are known. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { childIdOf } from '@coxswain/protocol';
import { beforeAll, expect, test } from 'vitest';
import { cox } from './kit/child.ts';
import { busAndHost } from './kit/fixture.ts';
import { eventOf, journalOf } from './kit/journal.ts';
import { scratchFolder } from './kit/scratch.ts';
import { scripted } from './kit/scripts.ts';

const fixture = busAndHost();
let folder: string;
beforeAll(async () => {
  folder = await scratchFolder('views');
  await mkdir(join(folder, 'personas'));
});

const run = (args: readonly string[], env: NodeJS.ProcessEnv = {}) =>
  cox(args, { cwd: folder, env: { NATS_URL: fixture.bus.natsUrl, INIT_CWD: folder, ...env } });
const write = (path: string) => ({ tool: 'write_file', args: { path, content: 'x' } });

test('of two who decide at once one is told who did', async () => {
  const model = await scripted([{ calls: [write('a.txt'), write('b.txt')] }, { text: 'Done.' }]);
  const begun = await run(['run', 'Write.', '--id', 'two', '--model', model]);
  // Each call stands on a line of its own, to be typed as it is.
  expect(begun.code, begun.told).toBe(6);
  expect(begun.stderr).toMatch(
    /2 calls need an approval.*\n.*approve two c1_1 .*a\.txt.*\n.*approve two c1_2 .*b\.txt/,
  );
  expect(await run(['deny', 'two', 'c1_1'], { COX_ACTOR: 'ada' })).toMatchObject({ code: 0 });
  const late = await run(['approve', 'two', 'c1_1'], { COX_ACTOR: 'bob' });
  expect(late).toMatchObject({ code: 1, stderr: expect.stringContaining('ada already decided this call: deny') });
  expect((await journalOf(fixture.bus, 'two')).of('approval_decided')).toMatchObject([
    { actor: { name: 'ada', verified: false } },
  ]);
  expect(await run(['deny', 'two', 'c1_2'], { COX_ACTOR: 'session:two' })).toMatchObject({ code: 2 });
}, 120_000);

test('a list says who has each session, and which persona one waits for', async () => {
  const { bus } = fixture;
  const model = await scripted([
    { calls: [{ tool: 'handoff', args: { to: 'clerk', brief: 'Yours.' } }] },
    { text: 'I have it.' },
  ]);
  await writeFile(
    join(folder, 'personas/desk.yaml'),
    'name: desk\nhandoffs: [clerk]\npermissions: {rules: [{tool: handoff, action: allow}]}\n',
  );
  await writeFile(join(folder, 'personas/clerk.yaml'), 'name: clerk\n');
  expect(await run(['run', 'Go.', '--id', 'handed', '--persona', 'desk', '--model', model])).toMatchObject({ code: 0 });
  expect(await run(['persona', 'pause', 'clerk'])).toMatchObject({ code: 0 });
  await run(['run', 'Go.', '--id', 'held', '--persona', 'clerk', '--model', model, '--detach']);
  await eventOf(bus, 'held', 'waiting_for_persona');
  const listed = (await run(['session', 'list'])).stdout;
  expect(listed).toMatch(/^handed +clerk +stopped \(end_turn\)/m);
  expect(listed).toMatch(/^held +clerk +assistant_streaming, clerk is paused/m);
  const rows = (await run(['session', 'list', '--json'])).stdout.trim().split('\n');
  expect(rows.map((row) => JSON.parse(row))).toContainEqual(
    expect.objectContaining({ session_id: 'handed', persona: 'clerk', stop_reason: 'end_turn' }),
  );
  expect((await run(['session', 'show', 'held'])).stdout).toMatch(/^waits +clerk is paused/m);
  await run(['persona', 'resume', 'clerk']);
}, 120_000);

test('a tree counts what is used while its calls are open, and claims no price', async () => {
  const model = await scripted([
    {
      match: 'lead',
      usage: { input_tokens: 70, output_tokens: 7 },
      calls: [{ tool: 'delegate', args: { persona: 'hand', prompt: 'Work.' } }],
    },
    { match: 'Work', usage: { input_tokens: 30, output_tokens: 3 }, calls: [write('c.txt')] },
  ]);
  await writeFile(
    join(folder, 'personas/lead.yaml'),
    'name: lead\npermissions: {rules: [{tool: delegate, action: allow}]}\n',
  );
  await writeFile(join(folder, 'personas/hand.yaml'), 'name: hand\n');
  await run(['run', 'lead', '--id', 'used', '--persona', 'lead', '--crew', 'hand', '--model', model, '--detach']);
  await eventOf(fixture.bus, childIdOf('used', '3-0'), 'approval_requested');
  const { stdout } = await run(['session', 'tree', 'used']);
  expect(stdout).toMatch(/^used +lead +function_execute +70 tokens in, 7 out$/m);
  expect(stdout).toMatch(/^2 sessions, 100 tokens in, 10 out$/m);
  expect((await run(['session', 'usage', 'used'])).stdout).toMatch(
    /^run 1 +70 in +0 cached +7 out +unknown price +1 turn on/m,
  );
  await run(['cancel', 'used']);
}, 120_000);

test('a step that waits for a person ends the command where nobody sits at a terminal, and says what to type', async () => {
  const model = await scripted([
    { usage: { input_tokens: 500, output_tokens: 1 }, calls: [{ tool: 'list_files', args: { path: '.' } }] },
    { text: 'Listed.' },
  ]);
  await writeFile(
    join(folder, 'personas/stepper.yaml'),
    'name: stepper\nsteps: [{name: one, prompt: List., max_tokens: 100, error_boundary: escalate}]\n',
  );
  const stopped = await run(['run', 'Go.', '--id', 'stepped', '--persona', 'stepper', '--model', model]);
  expect(stopped.code, stopped.told).toBe(6);
  expect(stopped.stderr).toMatch(
    /the step one has failed; resume the session to retry it.*\n.*resume stepped .*attach stepped/,
  );
  expect((await run(['session', 'show', 'stepped'])).stdout).toMatch(
    /^suspended +automatically, .*the step one failed/m,
  );
  expect(await run(['session', 'resume', 'stepped'])).toMatchObject({ code: 0 });
  expect(await run(['attach', 'stepped'])).toMatchObject({ code: 0, stdout: 'Listed.\n' });
}, 120_000);

test('and so does one of a session below', async () => {
  const model = await scripted([
    { match: 'chief', calls: [{ tool: 'delegate', args: { persona: 'walker', prompt: 'Walk.' } }] },
    { match: 'chief', text: 'All is done.' },
    { usage: { input_tokens: 500, output_tokens: 1 }, calls: [{ tool: 'list_files', args: { path: '.' } }] },
    { text: 'Walked.' },
  ]);
  await writeFile(
    join(folder, 'personas/chief.yaml'),
    'name: chief\npermissions: {rules: [{tool: delegate, action: allow}]}\n',
  );
  await writeFile(
    join(folder, 'personas/walker.yaml'),
    'name: walker\nsteps: [{name: one, prompt: Walk., max_tokens: 100, error_boundary: escalate}]\n',
  );
  const crew = ['--persona', 'chief', '--crew', 'walker', '--model', model];
  const stopped = await run(['run', 'chief', '--id', 'tread', ...crew]);
  const walker = childIdOf('tread', '3-0');
  expect(stopped.code, stopped.told).toBe(6);
  expect(stopped.stderr).toMatch(new RegExp(`step one has failed.* of walker ${walker}`));
  expect(stopped.stderr).toMatch(new RegExp(`resume ${walker} .*attach tread`));
  expect(await run(['session', 'resume', walker])).toMatchObject({ code: 0 });
  expect(await run(['attach', 'tread'])).toMatchObject({ code: 0, stdout: 'All is done.\n' });
}, 120_000);
