/** The steering file of a session on a real server: what is written to it is heard, once, and then it is empty. */
import { appendFile, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { CoxBed, jsonLines } from './cox-process.ts';

vi.setConfig({ testTimeout: 180_000 });

let bed: CoxBed;

beforeAll(async () => {
  bed = await CoxBed.make();
  await bed.file(
    'waits.yaml',
    `turns:
  - {text: I wait., calls: [{tool: run_command, args: {command: 'until [ -e heard ]; do sleep 0.1; done'}}]}
  - {text: Done.}
`,
  );
  await bed.file(
    'waits-twice.yaml',
    `turns:
  - {text: I wait., calls: [{tool: run_command, args: {command: 'sleep 60'}}]}
  - {text: Again., calls: [{tool: run_command, args: {command: 'until [ -e heard-again ]; do sleep 0.1; done'}}]}
  - {text: Done.}
`,
  );
});
afterAll(() => bed?.remove(), 180_000);

const run = (id: string, script: string) => [
  ...['run', 'go', '--id', id, '--json'],
  ...['--model', `scripted/${script}.yaml`, '--allow', 'run_command'],
];

test('a line in the session’s own file is delivered as steering, and the file is empty again', async () => {
  const own = bed.start(run('own-file', 'waits'));
  await own.seen(/"type":"call_started"/);
  const file = join(bed.stateDir, 'steering', 'own-file.steering');
  await appendFile(file, 'try a different approach\n');
  await own.seen(/"type":"steering_received"/);
  await writeFile(join(bed.folder, 'heard'), '');
  const { code, stdout } = await own.end;
  expect(code).toBe(0);
  const injected = jsonLines(stdout).filter(({ type }) => type === 'message_injected');
  expect(injected).toMatchObject([
    { origin: 'steer', seam: 'post_tool_dispatch', message: { content: [{ text: 'try a different approach' }] } },
  ]);
  expect(await readFile(file, 'utf8')).toBe('');
});

test('a file that the environment names is read on by who attaches after a kill, and nothing is heard twice', async () => {
  const file = join(bed.folder, 'elsewhere', 'steer');
  await mkdir(join(bed.folder, 'elsewhere'));
  const env = { AGENT_STEERING_FILE: file };
  const killed = bed.start(run('killed', 'waits-twice'), { env });
  await killed.seen(/"type":"call_started"/);
  await appendFile(file, 'before the kill\n');
  await killed.seen(/"type":"steering_received"/);
  killed.child.kill('SIGKILL');
  await killed.end;
  await appendFile(file, 'while nobody reads\n');
  const attached = bed.start(['attach', 'killed', '--json', '--steering-file', file]);
  await attached.seen(/while nobody reads/);
  await writeFile(join(bed.folder, 'heard-again'), '');
  expect((await attached.end).code).toBe(0);
  const received = jsonLines((await bed.run(['session', 'watch', 'killed', '--json'])).stdout);
  expect(received.filter(({ type }) => type === 'steering_received').map(({ body }) => body)).toEqual([
    'before the kill',
    'while nobody reads',
  ]);
});
