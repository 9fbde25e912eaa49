/**
 * The runner's scenarios on a real server: each is played once more on the NATS adapters, and its journal comes out as the one
 * that was recorded in memory, byte for byte. What a session does is its own; the bus only carries it.
 */
import { expect, test } from 'vitest';
import { natsGround } from './nats-ground.ts';
import { NatsStageBus } from './nats-stage-bus.ts';
import { recordTrace } from './record-trace.ts';
import { SCENARIOS } from './scenarios/all.ts';
import { readTrace } from './trace-files.ts';

/** `npm test` plays every eighth: the contract tests own the adapters. The nightly run plays every scenario. */
const isPlayed = (_: unknown, index: number) => process.env.COX_NIGHTLY === '1' || index % 8 === 2;
const ground = natsGround();

const scenarios = SCENARIOS.filter(({ racing }) => !racing).filter(isPlayed);

test.each(scenarios.map((scenario) => [scenario.name, scenario] as const))('%s', async (name, scenario) => {
  await ground.empty();
  const { records } = await recordTrace(scenario, true, (clock) => new NatsStageBus(ground.nc, clock));
  expect(records.map(text)).toEqual(readTrace(name).map(text));
});

function text(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('utf8');
}
