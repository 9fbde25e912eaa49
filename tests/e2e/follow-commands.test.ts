/** Commands that follow sessions until they are stopped. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { CoxBed } from './cox-process.ts';

let bed: CoxBed;
beforeAll(async () => {
  bed = await CoxBed.make();
  await bed.file('quick.yaml', 'turns: [{text: quick}]');
});
afterAll(() => bed.remove());

test('the lists of approvals and the tree wait for a restart of cox up, and do not end', async () => {
  const up = bed.start(['up', '--json', '--no-gateway'], { withinMs: 300_000 });
  await up.seen(/"type":"ready"/);
  expect(await bed.run(['run', 'go', '--id', 'seen', '--model', 'scripted/quick.yaml'])).toMatchObject({ code: 0 });
  const approvals = bed.start(['approval', 'list', '--follow']);
  await approvals.seen(/watching/);
  const tree = bed.start(['session', 'tree', 'seen', '--follow']);
  await tree.seen(/1 session,/);
  up.child.kill('SIGTERM');
  expect((await up.end).code).toBe(0);
  await approvals.seen(/waiting 10 s for its restart/);
  await tree.seen(/waiting 10 s for its restart/);
});
