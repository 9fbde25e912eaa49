/** Calls of children that wait for a person, where the run of their parent is followed: told, decided and denied there. */
import { once } from 'node:events';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { childIdOf } from '@coxswain/protocol';
import { beforeAll, expect, test } from 'vitest';
import { cox } from './kit/child.ts';
import { busAndHost } from './kit/fixture.ts';
import { endOf, eventOf, journalOf } from './kit/journal.ts';
import { scratchFolder } from './kit/scratch.ts';
import { scripted } from './kit/scripts.ts';
import { atTerminal, hasTerminal } from './kit/terminal.ts';

const fixture = busAndHost();

const delegate = (persona: string) => ({ tool: 'delegate', args: { persona, prompt: `Work, ${persona}.` } });
const ALLOW = '\npermissions: {rules: [{tool: delegate, action: allow}]}\n';

let folder: string;
let model: string;
/** The one who writes works for a mate, who works for the lead. */
const writerOf = (lead: string) => childIdOf(childIdOf(lead, '3-0'), '3-0');

beforeAll(async () => {
  folder = await scratchFolder('crew');
  await mkdir(join(folder, 'personas'));
  const personas = { lead: ALLOW, mate: ALLOW, writer: '\n' };
  for (const [name, more] of Object.entries(personas))
    await writeFile(join(folder, `personas/${name}.yaml`), `name: ${name}${more}`);
  model = await scripted([
    { match: 'All of it', calls: [delegate('mate')] },
    { match: 'All of it', text: 'All is done.' },
    { match: 'mate', calls: [delegate('writer')] },
    { match: 'mate', text: 'The writer is done.' },
    { match: 'writer', calls: [{ tool: 'write_file', args: { path: 'out.txt', content: 'written' } }] },
    { match: 'writer', text: 'I am done.' },
  ]);
});

const runOf = (id: string) => [
  'run',
  'All of it',
  '--id',
  id,
  '--persona',
  'lead',
  '--crew',
  'personas',
  '--model',
  model,
];
const env = () => ({ NATS_URL: fixture.bus.natsUrl, INIT_CWD: folder });

test('where nobody sits at a terminal the command ends and says which session asks; the crew goes on when it is told', async () => {
  const run = await cox(runOf('asks'), { cwd: folder, env: env() });
  const writer = writerOf('asks');
  expect(run.code, run.told).toBe(6);
  expect(run.stderr).toContain(
    `? write_file path: out.txt, content: written waits for an approval (c1_1) of writer ${writer}`,
  );
  const shown = await cox(['session', 'show', 'asks'], { env: env() });
  expect(shown.stdout, shown.told).toContain(`${writer} (writer): c1_1 write_file path: out.txt`);
  expect(shown.stdout).toContain(`/bin/cox.mjs approve ${writer} c1_1\n`);
  expect(run.stderr).toMatch(new RegExp(`cox.mjs approve ${writer} && .*cox.mjs attach asks`));
  expect(await cox(['approve', 'asks', 'c9'], { env: env() })).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/call_unknown/),
  });
  // Whoever has started the crew need not know who asks in it.
  expect(await cox(['approve', 'asks'], { env: env() })).toMatchObject({ code: 0, stdout: `${writer}: accepted\n` });
  const attached = await cox(['attach', 'asks'], { env: env() });
  expect({ code: attached.code, stdout: attached.stdout }).toEqual({ code: 0, stdout: 'All is done.\n' });
  expect(await readFile(join(folder, 'out.txt'), 'utf8')).toBe('written');
});

test('what a child waits for already is told to whoever attaches', async () => {
  await cox([...runOf('joined'), '--detach'], { cwd: folder, env: env() });
  await eventOf(fixture.bus, writerOf('joined'), 'approval_requested');
  const attached = await cox(['attach', 'joined'], { env: env() });
  expect(attached.code, attached.told).toBe(6);
  expect(attached.stderr).toContain(`waits for an approval (c1_1) of writer ${writerOf('joined')}`);
  await cox(['cancel', 'joined'], { env: env() });
  await endOf(fixture.bus, 'joined');
});

test('--on-ask deny denies in the child, and JSON lines say so with its id', async () => {
  const run = await cox([...runOf('denies'), '--on-ask', 'deny', '--json'], { cwd: folder, env: env() });
  expect(run.code, run.told).toBe(0);
  const asked = run.json.filter(({ type }) => type === 'approval_requested' || type === 'approval_decided');
  expect(asked).toMatchObject([
    { session_id: writerOf('denies'), type: 'approval_requested', tool: 'write_file' },
    { session_id: writerOf('denies'), type: 'approval_decided', decision: 'deny' },
  ]);
  expect((await journalOf(fixture.bus, writerOf('denies'))).of('call_ended')).toMatchObject([{ status: 'denied' }]);
});

test.skipIf(!hasTerminal)('y at the keyboard decides the call of a child (needs util-linux’ script)', async () => {
  const terminal = atTerminal(runOf('typed'), folder, env());
  let shown = '';
  terminal.stdout.setEncoding('utf8').on('data', (text: string) => {
    if (!shown.includes('allow write_file') && `${shown}${text}`.includes('allow write_file'))
      terminal.stdin.write('y\r');
    shown += text;
  });
  const [code] = await once(terminal, 'close');
  expect(code, shown).toBe(0);
  expect(shown).toContain('All is done.');
  expect((await journalOf(fixture.bus, writerOf('typed'))).of('approval_decided')).toMatchObject([
    { decision: 'allow' },
  ]);
});
