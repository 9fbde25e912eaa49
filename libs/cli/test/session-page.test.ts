/** Lists of sessions, page by page. */
import { expect, test } from 'vitest';
import { pageOf } from '../src/run/session-page.ts';

const all = ['e5', 'd4', 'c3', 'b2', 'a1'].map((session_id) => ({ session_id }));
const ids = (limit: number, after?: string) => {
  const { items, left } = pageOf(all, { limit, after });
  return [items.map(({ session_id }) => session_id), left];
};

test('a page is what stands behind the last of the one before, and says how many are left', () => {
  expect(ids(2)).toEqual([['e5', 'd4'], 3]);
  expect(ids(2, 'd4')).toEqual([['c3', 'b2'], 1]);
  expect(ids(2, 'b2')).toEqual([['a1'], 0]);
  expect(ids(2, 'a1')).toEqual([[], 0]);
  expect(ids(100)).toEqual([['e5', 'd4', 'c3', 'b2', 'a1'], 0]);
});

test('a session that has gone to the top meanwhile makes pages repeat, and leave none out', () => {
  const moved = [{ session_id: 'd4' }, ...all.filter(({ session_id }) => session_id !== 'd4')];
  expect(pageOf(moved, { limit: 9, after: 'd4' }).items.map(({ session_id }) => session_id)).toEqual([
    'e5',
    'c3',
    'b2',
    'a1',
  ]);
});

test('the beginning of an id is enough, and one that is not in the list is said', () => {
  expect(ids(1, 'c')).toEqual([['b2'], 1]);
  expect(() => ids(1, 'x')).toThrow('session_not_found');
});
