/** docs/guides/client.md and the README: every program of the client in them is run as it stands. */
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { busAndHost } from './kit/fixture.ts';
import { type GatewayUnderTest, startGateway } from './kit/gateway.ts';
import { guidePrograms } from './kit/guide-programs.ts';
import { scripted } from './kit/scripts.ts';

vi.setConfig({ testTimeout: 180_000 });

/** What each program says, in order. */
const SAYS = [
  /admin[\s\S]*sessions of default/,
  /hello\nend_turn, \d+ tokens\ngoodbye/,
  /hello end_turn/,
  /true accepted\nnot_running/,
  /the message became a prompt/,
  /stopped/,
];

const programs = await guidePrograms('client.md');
const readme = await guidePrograms('../../README.md');
const fixture = busAndHost();
let gateway: GatewayUnderTest;

beforeAll(async () => {
  gateway = await startGateway(fixture.bus);
});
afterAll(async () => {
  await gateway?.stop();
  await programs.remove();
  await readme.remove();
});

test('has as many programs as are looked at here', () => expect(programs.texts).toHaveLength(SAYS.length));

test.each(SAYS.map((says, index) => [index + 1, says] as const))('program %i runs', async (number, says) => {
  const child = await programs.start(number, {
    COX_GATEWAY_URL: gateway.url,
    COX_GATEWAY_TOKEN: gateway.token,
    NATS_URL: fixture.bus.natsUrl,
    COX_MODEL: await scripted([{ text: 'hello' }, { text: 'goodbye' }]),
  });
  expect(await child.exited, child.stderr).toEqual({ code: 0, signal: null });
  expect(child.stdout).toMatch(says);
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
