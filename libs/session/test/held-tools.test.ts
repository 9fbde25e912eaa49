/** Tool connections that a session holds: each is closed once, and none stays open after the runner has left. */
import type { Toolset } from '@coxswain/ports';
import { beforeEach, describe, expect, test } from 'vitest';
import { HeldTools } from '../src/effects/held-tools.ts';

let open: Set<string>;
/** How often a toolset was closed that was not open. */
let closedTwice: number;
let runner: AbortController;
let tools: HeldTools;

beforeEach(() => {
  open = new Set();
  closedTwice = 0;
  runner = new AbortController();
  tools = new HeldTools(async () => null, runner.signal);
});

/** An open toolset. @param closing its close waits for it. */
function opened(name: string, closing: Promise<void> = Promise.resolve()): Toolset {
  open.add(name);
  return {
    tools: [],
    call: () => Promise.reject(new Error('not called')),
    probe: async () => ({ state: 'unknown' }),
    close: async () => {
      await closing;
      if (!open.delete(name)) closedTwice++;
      return [];
    },
  };
}

/** The runner leaves, as in `SessionWorker.dispose`. */
function leave(): Promise<readonly string[]> {
  runner.abort();
  return tools.close();
}

/** A wait that the test ends. */
function gate(): { readonly passed: Promise<void>; readonly open: () => void } {
  let open = () => {};
  const passed = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { passed, open };
}

test('tools are closed once if the runner leaves while earlier ones are closed', async () => {
  const closing = gate();
  await tools.hold(opened('first', closing.passed));
  const held = tools.hold(opened('second'));
  await leave();
  closing.open();
  await held;
  expect([...open]).toEqual([]);
  expect(closedTwice).toBe(0);
});

describe('tools that are reopened', () => {
  let opening: ReturnType<typeof gate>;

  beforeEach(() => {
    opening = gate();
    const reopen = async () => {
      await opening.passed;
      return opened('reopened');
    };
    tools = new HeldTools(reopen, runner.signal);
  });

  test('do not replace the tools of the next run', async () => {
    const waiting = tools.get();
    const next = opened('next');
    await tools.hold(next);
    opening.open();
    expect(await waiting).toBe(next);
    expect([...open]).toEqual(['next']);
  });

  test('are closed if the run has ended', async () => {
    const waiting = tools.get();
    await tools.close();
    opening.open();
    expect(await waiting).toBeNull();
    expect([...open]).toEqual([]);
  });
});

test('the tools of a hand-off are closed if the runner leaves while earlier ones are closed', async () => {
  const closing = gate();
  await tools.prepare({ toolset: opened('first', closing.passed), persona: 'a' });
  const prepared = tools.prepare({ toolset: opened('second'), persona: 'b' });
  await leave();
  closing.open();
  await prepared;
  expect([...open]).toEqual([]);
  expect(closedTwice).toBe(0);
});

test('the tools of a hand-off are closed if the runner has left before', async () => {
  await leave();
  await tools.prepare({ toolset: opened('late'), persona: 'a' });
  expect([...open]).toEqual([]);
});
