import type { WirePendingApproval } from '@coxswain/client';
import { expect, test } from 'vitest';
import { ApprovalChanges } from '../src/run/mod.ts';

const approval = (call_id: string) => ({ session_id: 's1', call_id }) as WirePendingApproval;

function changes() {
  const shown: string[] = [];
  const approvals = new ApprovalChanges(
    (requested) => shown.push(...requested.map(({ call_id }) => `+${call_id}`)),
    ({ call_id }) => shown.push(`-${call_id}`),
  );
  return { shown, look: (...ids: string[]) => approvals.look(async () => ids.map(approval)), approvals };
}

test('an approval is shown once when it is new, and once when it is settled', async () => {
  const { shown, look } = changes();
  await look('c1');
  await look('c1', 'c2');
  await look('c2');
  expect(shown).toEqual(['+c1', '+c2', '-c1']);
});

test('lists that are requested at the same time are read one after another, and show no approval twice', async () => {
  const { shown, look } = changes();
  await Promise.all([look('c1'), look('c1')]);
  expect(shown).toEqual(['+c1']);
});

test('after a list that cannot be read, the next one continues', async () => {
  const { shown, look, approvals } = changes();
  await look('c1');
  await expect(approvals.look(() => Promise.reject(new Error('no bus')))).rejects.toThrow('no bus');
  await look('c1', 'c2');
  expect(shown).toEqual(['+c1', '+c2']);
});
