/** Folded states that are kept for the next inspector of a session. */
import { sessionRef } from '@coxswain/protocol';
import type { InspectedFold } from '@coxswain/session';
import { emptyState } from '@coxswain/turn';
import { expect, test } from 'vitest';
import { GATEWAY_BOUNDS } from '../src/context/mod.ts';
import { FoldCache } from '../src/socket/mod.ts';

const ref = (sessionId: string, tenant = 'red') => sessionRef(sessionId, tenant);
const fold = (sessionId: string, n: number): InspectedFold => ({
  sessionId,
  n,
  state: emptyState(sessionId),
  machine: undefined,
});

test('the newest fold of a session is kept, for records after it', () => {
  const kept = new FoldCache(4);
  kept.keep(ref('a'), fold('a', 20));
  kept.keep(ref('a'), fold('a', 10));
  expect(kept.before(ref('a'), 21)?.n).toBe(20);
  expect(kept.before(ref('a'), 20)).toBeNull();
  expect(kept.before(ref('a', 'blue'), 21)).toBeNull();
  kept.forget(ref('a'));
  expect(kept.before(ref('a'), 21)).toBeNull();
});

test('a fold that is too large is not kept', () => {
  const kept = new FoldCache(4);
  kept.keep(ref('a'), fold('a', 10));
  const { state, ...rest } = fold('a', 20);
  const large = 'x'.repeat(GATEWAY_BOUNDS.keptFoldMaxChars);
  const context = Object.assign({}, state.context, { large });
  kept.keep(ref('a'), { ...rest, state: Object.assign({}, state, { context }) });
  expect(kept.before(ref('a'), 21)?.n).toBe(10);
});

test('beyond the bound, the least recently used fold is removed', () => {
  const kept = new FoldCache(2);
  kept.keep(ref('a'), fold('a', 1));
  kept.keep(ref('b'), fold('b', 1));
  expect(kept.before(ref('a'), 9)).not.toBeNull();
  kept.keep(ref('c'), fold('c', 1));
  expect(['a', 'b', 'c'].filter((id) => kept.before(ref(id), 9) !== null)).toEqual(['a', 'c']);
});
