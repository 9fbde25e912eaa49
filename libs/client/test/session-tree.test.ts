/** The tree of a session, read from journals. */
import { expect, test } from 'vitest';
import { readTree } from '../src/session-tree.ts';

test('the tree of an unknown session is rejected, and not empty', async () => {
  const nothing = async function* () {};
  await expect(readTree(nothing, 'unknown')).rejects.toMatchObject({
    code: 'session_not_found',
    sessionId: 'unknown',
  });
});
