/**
 * Refunds in files, one for each order, where no agent can write. A complete file is linked into its place: if two
 * processes refund the same order at the same time, one succeeds and the other gets an error.
 */
import { createHash, randomUUID } from 'node:crypto';
import { link, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** A completed refund. */
export interface Refund {
  readonly receipt: string;
  readonly order: string;
  readonly cents: number;
  readonly reason: string;
  /** The idempotency key of the call: a repeated call with the same key gets the same refund. */
  readonly key: string;
}

/** The payments of customers, in cents, by order. */
export type Orders = ReadonlyMap<string, number>;

/** Reads `order,…,cents` lines below a heading. */
export function readOrders(csv: string): Orders {
  const lines = csv.trim().split(/\r?\n/).slice(1);
  return new Map(lines.map((line) => line.split(',')).map((cells) => [cells[0] ?? '', Number(cells.at(-1))]));
}

/**
 * Refunds an order, once.
 * @param key the idempotency key of the call: a repetition gets the completed refund.
 * @throws Error with the reason: unknown order, more than was paid, or an earlier refund of the order.
 */
export async function refundOrder(
  ledger: string,
  orders: Orders,
  { order, cents, reason, key }: Omit<Refund, 'receipt'>,
): Promise<Refund> {
  const paid = orders.get(order);
  if (paid === undefined) throw new Error(`there is no order ${order}`);
  if (cents > paid) throw new Error(`${order} was paid with ${inMoney(paid)}; ${inMoney(cents)} is more than that`);
  const receipt = `r-${createHash('sha256').update(key).digest('hex').slice(0, 8)}`;
  const refund: Refund = { receipt, order, cents, reason, key };
  const place = join(ledger, `${order}.json`);
  const draft = join(ledger, `.${randomUUID()}`);
  await mkdir(ledger, { recursive: true });
  await writeFile(draft, `${JSON.stringify(refund)}\n`, { flush: true });
  try {
    await link(draft, place);
    return refund;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    const made = JSON.parse(await readFile(place, 'utf8')) as Refund;
    if (made.key === key) return made;
    throw new Error(`${order} was refunded already: ${inMoney(made.cents)}, receipt ${made.receipt}`);
  } finally {
    await rm(draft, { force: true });
  }
}

/** `39.00`. */
export function inMoney(cents: number): string {
  return (cents / 100).toFixed(2);
}
