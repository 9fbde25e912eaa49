/** The support desk, as its README tells it; a refund that is denied; and its ledger. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { type Orders, readOrders, refundOrder } from '../../examples/crews/support-desk/refund-ledger.ts';
import { removeScratch, scratchFolder } from '../e2e/kit/scratch.ts';
import { Walkthrough } from './walkthrough.ts';

afterAll(removeScratch);

describe('support desk', () => {
  test('tickets go from hand to hand, a person approves the refund, and the desk takes the next job', async () => {
    const readme = await Walkthrough.of('support-desk', 'crews');
    const desk = await readme.next('waits for an approval');
    await readme.next();
    await readme.next();
    await desk.says('T-103 is done, without a refund.');
    await readme.next();
    await readme.next();
    await desk.says('T-104 is about neither');
    readme.expectEnd();
    await desk.stop();
    const outbox = await readdir(join(readme.folder, 'work/desk/outbox'));
    expect(outbox.sort()).toEqual(['T-101.txt', 'T-102.txt', 'T-103.txt']);
    expect(await readdir(join(readme.folder, 'work/ledger'))).toEqual(['o-7785.json']);
  });

  test('a refund that is denied is not made, and the customer is not told that it was', async () => {
    const readme = await Walkthrough.of('support-desk', 'crews');
    const desk = readme.begin('DESK=desk ./run.sh');
    await desk.says('waits for an approval');
    expect((await readme.type('npx cox deny desk --reason "asked twice"')).code).toBe(0);
    await desk.says('T-103 is done');
    expect(desk.output).toContain('T-101 is done, without a refund.');
    await desk.stop();
    expect(await readdir(join(readme.folder, 'work'))).not.toContain('ledger');
    expect(await readFile(join(readme.folder, 'work/desk/outbox/T-101.txt'), 'utf8')).not.toMatch(/given/);
  });

  describe('the ledger', () => {
    const csv =
      'order,account,date,item,cents\no-1,7,2026-01-01,Chart,3900\no-2,7,2026-01-02,Chart, with a comma,500\n';
    const orders: Orders = readOrders(csv);
    const asked = { order: 'o-1', cents: 3900, reason: 'twice', key: 'default.desk.1-0' };
    const ledger = () => scratchFolder('ledger');

    test('refunds an order once, and says the same again to the same call', async () => {
      const folder = await ledger();
      const made = await refundOrder(folder, orders, asked);
      expect(await refundOrder(folder, orders, asked)).toEqual(made);
      await expect(refundOrder(folder, orders, { ...asked, key: 'another' })).rejects.toThrow(
        `o-1 was refunded already: 39.00, receipt ${made.receipt}`,
      );
      expect(await readdir(folder)).toEqual(['o-1.json']);
    });

    test('of many at once one has done it', async () => {
      const folder = await ledger();
      const tries = Array.from({ length: 20 }, (_, at) => refundOrder(folder, orders, { ...asked, key: `call-${at}` }));
      const ends = await Promise.allSettled(tries);
      expect(ends.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
      expect(await readdir(folder)).toEqual(['o-1.json']);
    });

    test.each([
      [{ order: 'o-9' }, 'there is no order o-9'],
      [{ cents: 3901 }, 'o-1 was paid with 39.00; 39.01 is more than that'],
      [{ order: 'o-2', cents: 501 }, 'o-2 was paid with 5.00'],
    ])('refuses %j', async (change, why) => {
      const folder = await ledger();
      await expect(refundOrder(folder, orders, { ...asked, ...change })).rejects.toThrow(why);
      expect(await readdir(folder)).toEqual([]);
    });
  });
});
