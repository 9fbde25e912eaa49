/** Questions to a persona's own hooks, over a bus in memory, in time that the test moves on: asked as those of hook services. */
import type { HookReply } from '@coxswain/ports';
import { type HookRegistration, subjects, TenantId, TOOL_LIVENESS, versionToken } from '@coxswain/protocol';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createPersonaHookQuestions } from '../../libs/adapters/nats/src/ask-persona-hooks.ts';
import { servePersonaHooks } from '../../libs/client/src/serve-persona-hooks.ts';
import { FakeBus, FakeProcess, hookRequest } from './fake-connection.ts';

const log = { debug() {}, info() {}, warn() {}, error() {} };
const tenant = TenantId.parse('default');
const VERSION = versionToken('v1');
const registration = {
  id: 'clerk:guard',
  pattern: 'clerk',
  persona: 'clerk',
  persona_version: 'v1',
  point: 'user_prompt_submit',
  priority: 0,
  timeout_ms: 30_000,
  on_error: 'fail_closed',
} as HookRegistration;
const request = hookRequest(registration);

beforeEach(
  () =>
    void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'performance'] }),
);
afterEach(() => void vi.useRealTimers());

/** A host that asks, and knows of instances what the test says: when each was heard, `left` for one that has said that it leaves. */
function stage() {
  const bus = new FakeBus();
  const host = new FakeProcess(bus);
  const ran: string[] = [];
  const instances = new Map<string, { readonly process: FakeProcess; heard: 'now' | number | 'left' }>();
  const silentMs = (id: string) => {
    const heard = instances.get(id)?.heard ?? 'left';
    return heard === 'left' ? Number.POSITIVE_INFINITY : heard === 'now' ? 0 : performance.now() - heard;
  };
  const known = () => [...instances].flatMap(([id, { heard }]) => (heard === 'left' ? [] : [id]));
  const living = () => known().filter((id) => silentMs(id) < TOOL_LIVENESS.ttlMs);
  const questions = createPersonaHookQuestions(host.nc, log, {
    isServed: () => living().length > 0,
    serving: living,
    living,
    silent: () => known().filter((id) => !living().includes(id)),
    silentMs: (_tenant, _served, id) => silentMs(id),
    listenedMs: () => performance.now() + 60_000,
  });
  return {
    bus,
    ran,
    heard(id: string, heard: 'now' | 'silent' | 'left') {
      const one = instances.get(id);
      if (one) one.heard = heard === 'silent' ? performance.now() : heard;
    },
    serve(id: string) {
      const process = new FakeProcess(bus);
      const at = {
        shared: subjects.personaHooks(tenant, 'clerk', VERSION),
        own: subjects.personaHookTo(tenant, 'clerk', VERSION, id),
      };
      const handler = async () => {
        ran.push(id);
        await new Promise((resolve) => setTimeout(resolve, 500));
        return { block: true, reason: `by ${id}` };
      };
      servePersonaHooks(process.nc, tenant, at, id, [{ registration, handler }], () => undefined);
      instances.set(id, { process, heard: 'now' });
      return process;
    },
    ask() {
      const state: { reply?: HookReply } = {};
      void questions.ask(request, new AbortController().signal).then((reply) => {
        state.reply = reply;
      });
      return state;
    },
  };
}
const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);
const by = (id: string) => ({ status: 'returned', raw: { block: true, reason: `by ${id}` } });

test('a question outlasts the time for which heartbeats count: it is asked again when the persona is served again', async () => {
  const { serve, heard, ask, ran } = stage();
  const only = serve('a');
  only.disconnect();
  heard('a', 'silent');
  const before = ask();
  await pass(10_000);
  // So does one that is asked in the middle of the outage.
  const during = ask();
  await pass(10_000);
  expect([before.reply, during.reply]).toEqual([undefined, undefined]);
  only.reconnect();
  heard('a', 'now');
  await pass(1_000);
  expect([before.reply, during.reply]).toMatchObject([by('a'), by('a')]);
  expect(ran).toEqual(['a', 'a']);
});

test('a question that its instance took with it is asked of the next one that starts', async () => {
  const { serve, heard, ask, ran } = stage();
  const first = serve('a');
  const asked = ask();
  await pass(100);
  first.kill();
  heard('a', 'silent');
  await pass(10_000);
  expect(asked.reply).toBeUndefined();
  serve('b');
  await pass(1_000);
  expect(asked.reply).toMatchObject(by('b'));
  expect(ran).toEqual(['a', 'b']);
});

test('a question moves from a frozen instance to one that lives, and not into the queue group', async () => {
  const { bus, serve, heard, ask, ran } = stage();
  const [first] = [serve('a'), serve('b')];
  first.freeze();
  heard('a', 'silent');
  const asked = ask();
  await pass(4_000);
  expect(asked.reply).toMatchObject(by('b'));
  expect(ran).toEqual(['b']);
  const shared = subjects.personaHooks(tenant, 'clerk', VERSION);
  expect(bus.sent.filter(({ subject }) => subject === shared)).toHaveLength(1);
});

test('a question fails at once when every instance has said that it leaves', async () => {
  const { serve, heard, ask } = stage();
  serve('a').kill();
  heard('a', 'left');
  const asked = ask();
  await pass(10);
  expect(asked.reply).toMatchObject({ status: 'failed', code: 'hook_unavailable' });
});
