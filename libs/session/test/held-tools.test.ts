/** Tool connections of a session that its runner leaves: none stays open. */
import type { Toolset } from '@coxswain/ports';
import { beforeEach, expect, test } from 'vitest';
import { HeldTools } from '../src/effects/held-tools.ts';

let open: Set<string>;
let runner: AbortController;
let tools: HeldTools;

beforeEach(() => {
  open = new Set();
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
      open.delete(name);
      return [];
    },
  };
}

/** The runner leaves, as in `SessionWorker.dispose`. */
function leave(): Promise<readonly string[]> {
  runner.abort();
  return tools.close();
}

test('the tools of a hand-off are closed if the runner leaves while earlier ones are closed', async () => {
  let closed = () => {};
  const closing = new Promise<void>((resolve) => {
    closed = resolve;
  });
  await tools.prepare({ toolset: opened('first', closing), persona: 'a' });
  const prepared = tools.prepare({ toolset: opened('second'), persona: 'b' });
  await leave();
  closed();
  await prepared;
  expect([...open]).toEqual([]);
});

test('the tools of a hand-off are closed if the runner has left before', async () => {
  await leave();
  await tools.prepare({ toolset: opened('late'), persona: 'a' });
  expect([...open]).toEqual([]);
});
