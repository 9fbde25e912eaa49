/** Every figure that the FAQ gives stands in a kept result of the benchmarks. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { median } from '../bench/figures.ts';
import { REPOSITORY } from '../e2e/kit/child.ts';

interface Figure {
  readonly what: string;
  readonly value: number;
  readonly from: string;
}

const FAQ = readFileSync(join(REPOSITORY, 'docs/faq.md'), 'utf8');

function kept(file: string): (what: string) => Figure {
  const text = readFileSync(join(REPOSITORY, 'tests/bench/results', file), 'utf8');
  const { parts } = JSON.parse(text) as { parts: { figures: Figure[] }[] };
  const figures = parts.flatMap((part) => part.figures);
  return (what) => {
    const figure = figures.find((one) => one.what === what);
    if (!figure) throw new Error(`${file} has no figure of ${what}`);
    return figure;
  };
}

/** The FAQ names a result, and behind that each of these. */
function expectSaid(file: string, ...said: readonly string[]): void {
  expect(FAQ).toContain(`(../tests/bench/results/${file})`);
  for (const text of said) expect(FAQ).toContain(text);
}

const whole = (value: number) => Math.round(value).toLocaleString('en');

test('of a turn, of steering, cancelling and hooks', () => {
  const file = '2026-11-22-5e32c8e.json';
  const of = kept(file);
  const turn = of('time per plain turn ÷ (2 raw appends + 2 raw requests)').from.match(/[\d.]+ ms/g);
  const growth = of('cost per turn at 10,000 turns ÷ at 10').from.match(/[\d.]+ ms/g);
  const steer = of('steering: publish → steering_received durable, p50 ÷ raw').from.match(
    /p50 ([\d.]+) .*?raw p50 ([\d.]+)/,
  );
  const prompt = of('steering: publish → the model’s next prompt, p50');
  const cancel = of('cancel_call: publish → the tool’s signal, p50 ÷ raw').from.match(/p50 ([\d.]+) p99 ([\d.]+)/);
  const hook = of('hook_call acknowledged → verdict parsed ÷ raw request/reply').from.match(
    /([\d.]+) ms beside ([\d.]+) ms/,
  );
  expectSaid(
    file,
    `| ${turn?.[0]}, two appends | two raw appends and two raw requests: ${turn?.[1]} |`,
    `| ${growth?.[0]} | after 10 turns: ${growth?.[1]} |`,
    `| ${steer?.[1]} ms | the raw path: ${steer?.[2]} ms |`,
    `| ${prompt.value.toFixed(2)} ms | 99th percentile ${prompt.from.match(/p99 ([\d.]+)/)?.[1]} ms |`,
    `| ${cancel?.[1]} ms | 99th percentile ${cancel?.[2]} ms |`,
    `| ${hook?.[1]} ms | a raw request and reply: ${Number(hook?.[2]).toFixed(2)} ms |`,
  );
});

test('a median of an even number lies halfway between the two in the middle', () => {
  expect(median([4, 1, 3])).toBe(3);
  expect(median([723, 786, 995, 997])).toBe(890.5);
});

// From each run, as it was kept: what that release said of them took the upper of two runs in the middle.
test('beside Restate, also where it is the quicker one', () => {
  const file = '2026-11-22-5e32c8e.json';
  const { parts } = JSON.parse(readFileSync(join(REPOSITORY, 'tests/bench/results', file), 'utf8')) as {
    parts: { part: string; detail: unknown }[];
  };
  const { ours, peers } = (parts.find(({ part }) => part === 'steps') ?? { detail: { ours: [], peers: [] } })
    .detail as {
    ours: { started: Record<number, { steps_s: number }> }[];
    peers: (Record<`c${number}`, { steps_s: number }> & { steer_running: { p50_ms: number } })[];
  };
  expect([ours.length, peers.length]).toEqual([4, 4]);
  const steps = (runs: readonly ({ steps_s: number } | undefined)[]) =>
    whole(median(runs.map((run) => run?.steps_s ?? 0)));
  for (const [level, name] of [
    [1, 'durable steps a second, 1 session'],
    [50, 'the same, 50 sessions'],
    [500, 'the same, 500 sessions'],
  ] as const) {
    const [us, them] = [ours.map(({ started }) => started[level]), peers.map((peer) => peer[`c${level}`])];
    expectSaid(file, `| ${name} | ${steps(us)} | ${steps(them)} |`);
  }
  const steer = median(peers.map(({ steer_running }) => steer_running.p50_ms));
  expectSaid(file, `was ${steer.toFixed(1)} ms, ours to the next prompt`);
});

test('of recoveries', () => {
  const file = '2026-11-22-recovery-d631f7c.json';
  const of = kept(file);
  const seconds = (what: string) => `${of(what).value.toFixed(1)} s`;
  const [again, other] = ['recovery after a restart', 'recovery on another host'];
  expectSaid(
    file,
    `after ${seconds(`${again}: the first step again`)} and had moved every session after ${seconds(`${again}: every session has made a step`)}`,
    `within ${seconds(`${other}: the first step again`)} and ${seconds(`${other}: every session has made a step`)}`,
    `${of(`${again}: doubled or lost`).from.match(/(\d+) calls/)?.[1]} and ${of(`${other}: doubled or lost`).from.match(/(\d+) calls/)?.[1]} calls`,
  );
  expect(of(`${again}: doubled or lost`).value + of(`${other}: doubled or lost`).value).toBe(0);
});

test('of sessions at rest', () => {
  const file = '2026-11-22-idle-sessions-d37d65d.json';
  const of = kept(file);
  const value = (what: string) => of(`a passivated session: ${what}`).value;
  expectSaid(
    file,
    `${value('resident in the host').toFixed(0)} bytes each in the host`,
    `${value('resident in a restarted server').toFixed(1)} KiB each in a restarted server`,
    `${value('on the server’s disk').toFixed(1)} KiB on its disk`,
    `took ${of('`cox session list` lists them').value.toFixed(0)} s`,
  );
});
