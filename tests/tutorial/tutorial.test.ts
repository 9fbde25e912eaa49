/** The tutorials, typed block by block as a stranger would; every output is compared with the page. */
import { access, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { REPOSITORY } from '../e2e/kit/child.ts';
import { removeScratch } from '../e2e/kit/scratch.ts';
import { quietPorts } from './quiet-ports.ts';
import { TutorialReader, untilPrinted } from './tutorial-page.ts';

afterAll(removeScratch);

// One reader: the pages share the folder and the host, and each start of a process costs time.
test('every command of the tutorials works, and prints what the page shows', { timeout: 600_000 }, async () => {
  const reader = await TutorialReader.start();
  const succeeds = async () => expect((await reader.type()).code).toBe(0);

  await reader.open('docs/tutorial.md');
  reader.skip('git clone <address of this repository> coxswain\ncd coxswain\nnpm ci');
  expect((await reader.type(REPOSITORY)).code).toBe(0);
  reader.skip('mkdir -p harbour && cd harbour');
  const host = await reader.stay();
  const [address = ''] = /http:\/\/127\.0\.0\.1:\d+\//.exec(host.output) ?? [];
  expect(await (await fetch(address)).text()).toMatch(/<title>.*Coxswain/);
  await succeeds();
  const plan = await reader.stay();
  await succeeds();
  const { later } = await reader.type();
  await untilPrinted(plan, later);
  expect(await plan.end()).toBe(0);
  await succeeds();
  const tool = await reader.stay();
  await host.says('a tool is announced');
  await succeeds();
  expect(tool.output).toContain('asked about the lighthouse');
  const policy = await reader.stay();
  await host.says('hooks are registered');
  await succeeds();
  // The command that the hook denied would have deleted it.
  await access(join(reader.folder, 'policy.ts'));

  await reader.open('docs/tutorials/crash-and-replay.md');
  await succeeds();
  await succeeds();
  await succeeds();
  await reader.typeUntilSo();
  await succeeds();
  expect(await host.end()).not.toBe(0);
  const again = await reader.stay();
  await succeeds();
  expect(tool.output.match(/asked about the lighthouse/g)).toHaveLength(2);
  expect(await readFile(join(reader.folder, 'plan.md'), 'utf8')).toBe('Sunday 06:00, home by 08:30 with the ebb\n');
  await succeeds();
  await succeeds();
  expect((await reader.type()).code).toBe(1);
  await Promise.all([tool, policy].map((typed) => typed.stop()));

  await reader.open('docs/tutorials/typescript.md');
  await succeeds();
  await succeeds();

  const [port] = await quietPorts(1);
  await reader.open('docs/tutorials/web-app.md', new Map([['8080', String(port)]]));
  await succeeds();
  const refund = await reader.stay();
  await again.says('"tool":"refund"');
  const chat = await reader.stay();
  await succeeds();
  const events = await reader.stay();
  await succeeds();
  await succeeds();
  const decided = await reader.type();
  await untilPrinted(events, decided.later);
  await Promise.all([events, chat, refund].map((typed) => typed.stop()));

  const fixed = ['4301', '4302', '4303', '6301', '6302', '6303'];
  const free = await quietPorts(fixed.length);
  await reader.open('docs/tutorials/cluster.md', new Map(fixed.map((one, index) => [one, String(free[index])])));
  await succeeds();
  await again.end();
  reader.skip('export PATH="$PATH:$(dirname ~/.cache/coxswain/nats-server/*/nats-server)"');
  const servers = await reader.stay();
  await reader.exportVariables();
  await succeeds();
  const hosts = [await reader.stay(), await reader.stay()];
  const trip = await reader.stay();
  await succeeds();
  await untilPrinted(trip, trip.later);
  expect(await trip.end()).toBe(0);
  await succeeds();
  // Reads fail until the two other servers have elected leaders.
  await reader.typeUntilSo();
  reader.expectEnd();
  await Promise.all([...hosts, servers].map((typed) => typed.stop()));
});
