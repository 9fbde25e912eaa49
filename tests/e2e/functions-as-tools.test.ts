/** Programs that host sessions on a bus: the guide's program with a function as a tool, and `startCoxswain()` on a given server. */
import { readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startBus, type TestBus } from './kit/bus.ts';
import { Child, REPOSITORY } from './kit/child.ts';
import { endOf } from './kit/journal.ts';
import { removeScratch, scratchFolder } from './kit/scratch.ts';
import { scripted } from './kit/scripts.ts';
import { TRUSTED_BUS } from './kit/trusted-bus.ts';

let bus: TestBus;
const asked: string[] = [];
const stock = createServer((request, response) => {
  asked.push(request.url ?? '');
  response.end('12');
});

beforeAll(async () => {
  bus = await startBus();
  await new Promise<void>((resolve) => stock.listen(0, '127.0.0.1', resolve));
});
afterAll(async () => {
  stock.close();
  await bus.stop();
  await removeScratch();
});

/** The first program below a heading of a guide. */
async function programOf(guide: string, heading: string): Promise<string> {
  const text = await readFile(join(REPOSITORY, 'docs/guides', guide), 'utf8');
  const [, below = ''] = text.split(`\n## ${heading}\n`);
  const program = /```ts\n(.*?)```/s.exec(below)?.[1];
  if (!program) throw new Error(`no program below ${heading}`);
  return program;
}

test('the program of the guide serves sessions that call its function, and ends in order', async () => {
  const folder = await scratchFolder('functions');
  const { port } = stock.address() as AddressInfo;
  const program = await programOf('own-tools.md', 'Wire a host yourself');
  const main = join(folder, 'stock.mts');
  await writeFile(main, program.replace('https://stock.example.com', `http://127.0.0.1:${port}`));
  const service = await Child.ofSource(main, [], { cwd: folder, env: { ...TRUSTED_BUS, NATS_URL: bus.natsUrl } });
  await service.says('session host is up');

  const model = await scripted([
    { calls: [{ tool: 'stock_level', args: { article: 'rope' } }] },
    { calls: [{ tool: 'stock_level', args: { articel: 'rope' } }] },
    { text: 'Twelve.' },
  ]);
  const permissions = { rules: [{ tool: 'stock_level', action: 'allow' }] };
  await bus.command('stock', 'start', { prompt: 'How much rope?', model, root: folder, permissions });
  const journal = await endOf(bus, 'stock');
  expect(journal.of('call_ended')).toMatchObject([
    { status: 'ok', result: { content: [{ text: expect.stringMatching(/^12 pieces$/) }] } },
    { status: 'error', is_error: true },
  ]);
  expect(asked).toEqual(['/rope']);
  const [{ tools } = { tools: [] }] = journal.of('tools_changed');
  expect(tools.map(({ name }) => name)).toEqual(expect.arrayContaining(['read_file', 'fetch_url', 'stock_level']));

  expect(await service.terminate()).toEqual({ code: 0, signal: null });
});

test('startCoxswain() hosts sessions on the server that `bus` names', async () => {
  const folder = await scratchFolder('joins');
  const main = join(folder, 'joins.mts');
  const program = `import { startCoxswain } from ${JSON.stringify(join(REPOSITORY, 'libs/cli/src/mod.ts'))};
const [bus, stateDir] = process.argv.slice(2);
const coxswain = await startCoxswain({ bus, stateDir, models: { 'test/greeter': { turns: [{ text: 'Ahoy!' }] } } });
const { text } = await coxswain.run({ name: 'greeter', model: 'test/greeter' }, 'Hello.', { sessionId: 'joined' });
console.log(coxswain.url, text);
await coxswain.close();
`;
  await writeFile(main, program);
  const joined = await Child.ofSource(main, [bus.natsUrl, join(folder, 'state')], { cwd: folder, env: TRUSTED_BUS });
  expect(await joined.exited, joined.told).toEqual({ code: 0, signal: null });
  expect(joined.lines).toEqual([`${bus.natsUrl} Ahoy!`]);
  expect((await endOf(bus, 'joined')).of('agent_end')).toMatchObject([{ stop_reason: 'end_turn' }]);
});
