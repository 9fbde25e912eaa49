/** docs/guides/client.md, client-commands.md and the README: every program of the client in them is run as it stands. */
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { busAndHost } from './kit/fixture.ts';
import { type GatewayUnderTest, startGateway } from './kit/gateway.ts';
import { guidePrograms } from './kit/guide-programs.ts';
import { scripted } from './kit/scripts.ts';

vi.setConfig({ testTimeout: 180_000 });

/** What each program prints, in order. */
const GUIDES = [
  {
    name: 'client.md',
    prints: [/admin[\s\S]*sessions of default/, /hello\nend_turn, \d+ tokens\ngoodbye/, /hello end_turn/, /stopped/],
  },
  { name: 'client-commands.md', prints: [/true accepted\nnot_running/, /the message became a prompt/] },
];

const guides = await Promise.all(
  GUIDES.map(async (guide) => ({ ...guide, programs: await guidePrograms(guide.name) })),
);
const readme = await guidePrograms('../../README.md');
const fixture = busAndHost();
let gateway: GatewayUnderTest;

beforeAll(async () => {
  gateway = await startGateway(fixture.bus);
});
afterAll(async () => {
  await gateway?.stop();
  await Promise.all(guides.map(({ programs }) => programs.remove()));
  await readme.remove();
});

test.each(guides)('$name has as many programs as are run here', ({ prints, programs }) =>
  expect(programs.texts).toHaveLength(prints.length),
);

test.each(
  guides.flatMap(({ name, prints, programs }) =>
    prints.map((printed, index) => ({ name, number: index + 1, printed, programs })),
  ),
)('program $number of $name runs', async ({ number, printed, programs }) => {
  const child = await programs.start(number, {
    COX_GATEWAY_URL: gateway.url,
    COX_GATEWAY_TOKEN: gateway.token,
    NATS_URL: fixture.bus.natsUrl,
    COX_MODEL: await scripted([{ text: 'hello' }, { text: 'goodbye' }]),
  });
  expect(await child.exited, child.stderr).toEqual({ code: 0, signal: null });
  expect(child.stdout).toMatch(printed);
});

test('the program of the README streams, steers and approves', async () => {
  const child = await readme.start(1, {
    NATS_URL: fixture.bus.natsUrl,
    COX_MODEL: await scripted([
      { text: 'Running. ', calls: [{ tool: 'run_command', args: { command: 'true' } }] },
      { match: 'Only those of the parser', text: 'All green.' },
    ]),
  });
  expect(await child.exited, child.stderr).toEqual({ code: 0, signal: null });
  expect(child.stdout).toBe('Running. All green.');
});
