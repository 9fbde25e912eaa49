/** The line about a deletion. */
import { expect, test } from 'vitest';
import { deletedLine } from '../src/journals/mod.ts';

test('a deletion names the tenant of the session, unless it is the default', () => {
  const due = { status: 'would_delete', records: 4 } as const;
  expect(deletedLine('k3f9', 'default', due, false)).toEqual({
    out: 'k3f9\n',
    err: 'k3f9: would be deleted, 4 records\n',
  });
  expect(deletedLine('k3f9', 'default', { ...due, records: 1 }, false).err).toBe('k3f9: would be deleted, 1 record\n');
  expect(deletedLine('k3f9', 'red', due, false).err).toBe('k3f9 of red: would be deleted, 4 records\n');
  expect(JSON.parse(deletedLine('k3f9', 'red', due, true).out)).toMatchObject({ session_id: 'k3f9', tenant: 'red' });
});
