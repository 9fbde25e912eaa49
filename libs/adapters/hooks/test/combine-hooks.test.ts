/** Several sources of hooks as one. */
import type { Hooks } from '@coxswain/ports';
import { BOUNDS, type HookRegistration, TenantId } from '@coxswain/protocol';
import { expect, test, vi } from 'vitest';
import { combineHooks, createHookRegistry } from '../src/mod.ts';
import { askFirst, ref } from './ask.ts';

const logged: string[] = [];
const log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: (fields: object, message: string) => void logged.push(`${JSON.stringify(fields)} ${message}`),
};

test('they are asked by priority, then manifest before code, then as they were registered', () => {
  const code = createHookRegistry();
  const manifest = createHookRegistry({ name: 'manifest', source: 'manifest' });
  const more = createHookRegistry({ name: 'more' });
  const put = (registry: typeof code, id: string, priority?: number) =>
    registry.register({ point: 'post_turn', id, ...(priority === undefined ? {} : { priority }) }, () => undefined);
  put(more, 'late', 1);
  put(more, 'c');
  put(code, 'a');
  put(code, 'b');
  put(manifest, 'm');
  put(manifest, 'first', -1);
  const ids = () => hooks.table(ref.tenant).map(({ id }) => id);
  const hooks = combineHooks([code, manifest, more], log);
  expect(ids()).toEqual(['first', 'm', 'a', 'b', 'c', 'late']);
  const changed = vi.fn();
  const end = hooks.onChange?.(changed);
  put(code, 'd');
  expect(ids()).toEqual(['first', 'm', 'a', 'b', 'd', 'c', 'late']);
  expect(changed).toHaveBeenCalledTimes(1);
  end?.();
  put(code, 'e');
  expect(changed).toHaveBeenCalledTimes(1);
});

test('each question goes to the source that has registered what is asked', async () => {
  const one = createHookRegistry({ name: 'one' });
  const two = createHookRegistry({ name: 'two' });
  one.registerSessionHook('post_turn', () => ({ body: 'from one' }));
  two.registerSessionHook('session_idle', () => ({ body: 'from two' }));
  const hooks = combineHooks([one, two], log);
  expect(await askFirst(hooks, 'session_idle')).toEqual({ status: 'returned', raw: { body: 'from two' } });
  expect(await askFirst(hooks, 'post_turn')).toEqual({ status: 'returned', raw: { body: 'from one' } });
});

test('a question about a hook that its source has just removed goes to that source, which may still answer', async () => {
  const code = createHookRegistry();
  const registry = createHookRegistry();
  registry.register({ point: 'post_turn', id: 'removed' }, () => ({ body: 'still here' }));
  const changed: (() => void)[] = [];
  let table = registry.table();
  const services: Hooks = {
    table: () => table,
    onChange: (listener) => {
      changed.push(listener);
      return () => undefined;
    },
    ask: (request, signal) => registry.ask(request, signal),
  };
  const hooks = combineHooks([code, services, createHookRegistry()], log);
  const [registration] = hooks.table(ref.tenant);
  table = [];
  for (const change of changed) change();
  expect(hooks.table(ref.tenant)).toEqual([]);
  const asked = { table: () => [registration as HookRegistration], ask: hooks.ask };
  expect(await askFirst(asked, 'post_turn')).toEqual({ status: 'returned', raw: { body: 'still here' } });
  const unknown = { table: () => [{ ...(registration as HookRegistration), id: 'unknown' }], ask: hooks.ask };
  expect(await askFirst(unknown, 'post_turn')).toMatchObject({ status: 'failed', code: 'hook_unavailable' });
});

test('a change of one tenant reads the tables of that tenant again, and no others', () => {
  const read: string[] = [];
  let changed: (tenant?: TenantId) => void = () => undefined;
  const source: Hooks = {
    table(tenant) {
      read.push(tenant);
      return [];
    },
    onChange(listener) {
      changed = listener;
      return () => undefined;
    },
    ask: async () => ({ status: 'returned', raw: undefined }),
  };
  const hooks = combineHooks([source], log);
  const tenants = ['one', 'two'].map((name) => TenantId.parse(name));
  const readAll = () => {
    for (const tenant of tenants) hooks.table(tenant);
    return read.splice(0);
  };
  expect(readAll()).toEqual(['one', 'two']);
  changed(tenants[1]);
  expect(readAll()).toEqual(['two']);
  changed();
  expect(readAll()).toEqual(['one', 'two']);
});

test('of two under one id at one point the later is left out, and beyond the bound whatever comes; both are logged', () => {
  const one = createHookRegistry();
  const two = createHookRegistry();
  const kept = one.register({ point: 'post_turn', id: 'same', priority: 3 }, () => undefined);
  two.register({ point: 'post_turn', id: 'same', priority: 1 }, () => undefined);
  const hooks = combineHooks([one, two], log);
  expect(hooks.table(ref.tenant)).toMatchObject([{ id: 'same', priority: 3 }]);
  expect(logged.splice(0)).toEqual([expect.stringMatching(/"hook":"same".*two sources/)]);
  kept();
  expect(hooks.table(ref.tenant)).toMatchObject([{ id: 'same', priority: 1 }]);
  one.registerAll({ post_turn: Array.from({ length: BOUNDS.hooksMax }, () => () => undefined) });
  expect(hooks.table(ref.tenant)).toHaveLength(BOUNDS.hooksMax);
  expect(logged.splice(0)).toEqual([expect.stringMatching(/"hook":"same".*more than 256/)]);
});

test('a tenant with any number of hooks, which change all the time, takes a few lines in the log', () => {
  const registration = { point: 'post_turn', pattern: '*', priority: 0, timeout_ms: 1_000, on_error: 'fail_open' };
  const many = Array.from({ length: 10_000 }, (_, n) => ({ ...registration, id: `h${n % 5_000}` }) as HookRegistration);
  const changed: (() => void)[] = [];
  const services: Hooks = {
    table: () => many,
    onChange: (listener) => {
      changed.push(listener);
      return () => undefined;
    },
    ask: async () => ({ status: 'returned', raw: undefined }),
  };
  const hooks = combineHooks([services], log);
  for (let n = 0; n < 10; n++) {
    expect(hooks.table(ref.tenant)).toHaveLength(BOUNDS.hooksMax);
    for (const change of changed) change();
  }
  const lines = logged.splice(0);
  expect(lines.length).toBeLessThan(50);
  expect(lines.at(-1)).toMatch(/9736 more hooks are ignored/);
});
