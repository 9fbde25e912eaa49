import { expect, test } from 'vitest';
import { describeState, listingFrom } from '../src/session-listing.ts';

test('a session whose newest record cannot be read is listed as such', () => {
  const listing = listingFrom('s1', Buffer.from('garbage'));
  expect(listing).toMatchObject({ session_id: 's1', state: 'unreadable', n: 0 });
  expect(listing.unreadable).toContain('not JSON');
});

test('an ended session is never listed without how it ended', () => {
  expect(describeState('stopped', 'cancelled')).toBe('stopped (cancelled)');
  expect(describeState('failed', 'error')).toBe('failed (error)');
  expect(describeState({ function_execute: 'running' }, null)).toBe('function_execute');
});
