/** The rules by which a service of several session hosts starts, restarts and stops them. */
import { expect, test } from 'vitest';
import {
  type HostHandle,
  type HostRestart,
  HostSupervisor,
  RESTARTS,
  type Supervision,
} from '../src/hosts/supervise-hosts.ts';

/** A host that the test controls. */
class ScriptedHost implements HostHandle {
  readonly name: string;
  readonly ready: Promise<string>;
  readonly ended: Promise<string>;
  readonly failed: Promise<Error>;
  isStopped = false;
  serve: () => void = () => undefined;
  refuse: (error: Error) => void = () => undefined;
  end: (how: string) => void = () => undefined;
  fail: (error: Error) => void = () => undefined;

  constructor(name: string, incarnation: number) {
    this.name = name;
    this.ready = new Promise((resolve, reject) => {
      this.serve = () => resolve(`${name}-${incarnation}`);
      this.refuse = reject;
    });
    this.ended = new Promise((resolve) => {
      this.end = resolve;
    });
    this.failed = new Promise((resolve) => {
      this.fail = resolve;
    });
  }

  health = async (): Promise<string | null> => null;
  metrics = async () => `of ${this.name}`;
  async stop() {
    this.isStopped = true;
    this.end('exit code 0');
  }
}

/** A supervisor whose clock and pauses the test controls. */
function world(names: readonly string[] = ['a', 'b']) {
  const launched: ScriptedHost[] = [];
  const restarts: HostRestart[] = [];
  const clock = { nowMs: 0 };
  /** By the serial number of the launch; hosts serve at once otherwise. */
  const behaviour = new Map<number, (host: ScriptedHost) => void>();
  const supervision: Supervision = {
    names,
    launch(name) {
      const host = new ScriptedHost(name, launched.length + 1);
      launched.push(host);
      (behaviour.get(launched.length) ?? ((ready) => ready.serve()))(host);
      return host;
    },
    onRestart: (restart) => restarts.push(restart),
    nowMs: () => clock.nowMs,
    pause: async () => undefined,
  };
  return { launched, restarts, clock, behaviour, start: () => HostSupervisor.start(supervision), supervision };
}

/** Long enough for what follows from an end: pauses do not wait here. */
const settled = () => new Promise((resolve) => setImmediate(resolve));
const refuses = (host: ScriptedHost) => host.refuse(new Error('no server'));

test('HOSTS-1: the first host starts alone, and its failure ends the start', async () => {
  const { launched, behaviour, start } = world();
  behaviour.set(1, refuses);
  await expect(start()).rejects.toThrow('no server');
  expect(launched.map(({ name }) => name)).toEqual(['a']);
});

test('HOSTS-1: if a later host does not start, the hosts that serve stop', async () => {
  const { launched, behaviour, start } = world();
  behaviour.set(2, refuses);
  await expect(start()).rejects.toThrow('no server');
  expect(launched.map(({ isStopped }) => isStopped)).toEqual([true, true]);
});

test('HOSTS-2: a host that ends unexpectedly starts again under its name, as another incarnation', async () => {
  const { launched, restarts, start } = world();
  const supervisor = await start();
  expect(supervisor.hostIds()).toEqual(['a-1', 'b-2']);
  launched[0]?.end('SIGKILL');
  await settled();
  expect(supervisor.hostIds()).toEqual(['a-3', 'b-2']);
  expect(restarts).toEqual([{ host: 'a', why: 'SIGKILL', restart: 1, pauseMs: RESTARTS.firstPauseMs }]);
  expect(supervisor.remark()).toBeNull();
});

test('HOSTS-2: each end in a row doubles the pause; a row that is used up fails the service', async () => {
  const { launched, restarts, behaviour, start } = world();
  for (let launch = 3; launch < 3 + RESTARTS.inRowMax; launch++) behaviour.set(launch, refuses);
  const supervisor = await start();
  launched[1]?.end('exit code 1');
  const error = await supervisor.failed;
  expect(error).toMatchObject({ code: 'session_host_ended' });
  expect(error.message).toBe('the session host b ended, and 6 restarts in a row failed; the last time: no server');
  expect(restarts.map(({ pauseMs }) => pauseMs)).toEqual([500, 1_000, 2_000, 4_000, 8_000, 16_000]);
  expect(supervisor.hostIds()).toEqual(['a-1']);
});

test('HOSTS-3: a host that served for a minute begins a new row', async () => {
  const { launched, restarts, clock, start } = world(['a']);
  await start();
  for (const servedMs of [0, RESTARTS.steadyAfterMs - 1, RESTARTS.steadyAfterMs]) {
    clock.nowMs += servedMs;
    launched.at(-1)?.end('SIGSEGV');
    await settled();
  }
  expect(restarts.map(({ restart }) => restart)).toEqual([1, 2, 1]);
});

test('HOSTS-4: a failure that a host reports fails the service without a restart', async () => {
  const { launched, restarts, start } = world();
  const supervisor = await start();
  launched[1]?.fail(new Error('the streams were deleted'));
  expect((await supervisor.failed).message).toBe('the streams were deleted');
  launched[1]?.end('exit code 1');
  await settled();
  expect(restarts).toEqual([]);
});

test('HOSTS-5: a stop ends a pause, and starts no host', async () => {
  const { launched, supervision } = world();
  let isPausing = () => {};
  const paused = new Promise<void>((resolve) => {
    isPausing = resolve;
  });
  const supervisor = await HostSupervisor.start({
    ...supervision,
    pause: (_, signal) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason));
        isPausing();
      }),
  });
  launched[0]?.end('SIGKILL');
  await paused;
  expect(supervisor.remark()).toBe('a restarts after: SIGKILL');
  await expect(supervisor.ping()).resolves.toBeUndefined();
  await supervisor.stop();
  await settled();
  expect(launched).toHaveLength(2);
  expect(launched[1]?.isStopped).toBe(true);
});

test('HOSTS-5: a stop also stops a host that is still starting', async () => {
  const { launched, behaviour, start } = world();
  behaviour.set(3, () => undefined);
  const supervisor = await start();
  launched[0]?.end('SIGKILL');
  await settled();
  await supervisor.stop();
  expect(launched[2]?.isStopped).toBe(true);
});

test('HOSTS-5: a stop while the first host starts ends the start: it stops, and no other host starts', async () => {
  const { launched, behaviour, supervision } = world();
  behaviour.set(1, () => undefined);
  const stop = new AbortController();
  const starting = HostSupervisor.start({ ...supervision, stopping: stop.signal });
  stop.abort();
  launched[0]?.serve();
  await expect(starting).rejects.toBe(stop.signal.reason);
  expect(launched.map(({ name, isStopped }) => [name, isStopped])).toEqual([['a', true]]);
});

test('HOSTS-5: a stop while the last host starts ends the start, and all hosts stop', async () => {
  const { launched, behaviour, supervision } = world();
  behaviour.set(2, () => undefined);
  const stop = new AbortController();
  const starting = HostSupervisor.start({ ...supervision, stopping: stop.signal });
  await settled();
  stop.abort();
  launched[1]?.serve();
  await expect(starting).rejects.toBe(stop.signal.reason);
  expect(launched.map(({ isStopped }) => isStopped)).toEqual([true, true]);
});

test('HOSTS-5: a host that ends with the service does not restart', async () => {
  const { launched, restarts, supervision } = world();
  const stop = new AbortController();
  await HostSupervisor.start({ ...supervision, stopping: stop.signal });
  stop.abort();
  launched[0]?.end('exit code 0');
  await settled();
  expect([launched.length, restarts]).toEqual([2, []]);
});

test('health names the host that cannot do its work, and fails if no host serves', async () => {
  const { launched, behaviour, start } = world(['a', 'b']);
  const supervisor = await start();
  const [a, b] = launched as [ScriptedHost, ScriptedHost];
  a.health = async () => 'a stream is nearly full';
  await supervisor.ping();
  expect(supervisor.remark()).toBe('a stream is nearly full');
  b.health = async () => {
    throw new Error('NATS does not respond');
  };
  await expect(supervisor.ping()).rejects.toThrow('b: NATS does not respond');
  for (const launch of [3, 4]) behaviour.set(launch, () => undefined);
  for (const host of [a, b]) host.end('SIGKILL');
  await settled();
  await expect(supervisor.ping()).rejects.toThrow(
    'no session host serves: a restarts after: SIGKILL, b restarts after: SIGKILL',
  );
});

test('a host that does not answer for metrics is left out', async () => {
  const { launched, start } = world();
  const supervisor = await start();
  (launched[0] as ScriptedHost).metrics = async () => {
    throw new Error('it does not answer');
  };
  expect(await supervisor.metrics()).toEqual(['of b']);
});
