/** The tool `refund`, for orders in a file and a ledger in a folder. */
import { readFile } from 'node:fs/promises';
import { defineTool } from '@coxswain/client';
import { inMoney, readOrders, refundOrder } from './refund-ledger.ts';

/** @param orders a CSV file of orders. @param ledger the folder of refunds, created with the first one. */
export function refundTool(orders: string, ledger: string) {
  return defineTool({
    name: 'refund',
    description: 'Gives a customer money back for one order, at once and for good. Each order can be refunded once.',
    inputSchema: {
      type: 'object',
      properties: {
        order: { type: 'string', description: 'The order, as o-1234.', pattern: '^o-[0-9]{1,9}$' },
        cents: { type: 'integer', description: 'How much, in cents; at most what was paid.', minimum: 1 },
        reason: { type: 'string', description: 'Why, for the books.', minLength: 1, maxLength: 500 },
      },
      required: ['order', 'cents', 'reason'],
      additionalProperties: false,
    },
    // After the death of its worker, the call runs again and finds its own refund in the ledger.
    idempotent: true,
    async execute({ order, cents, reason }, { idempotencyKey: key }) {
      const asked = { order: String(order), cents: Number(cents), reason: String(reason), key };
      const made = await refundOrder(ledger, readOrders(await readFile(orders, 'utf8')), asked);
      return `Refunded ${inMoney(made.cents)} of order ${made.order}: receipt ${made.receipt}.`;
    },
  });
}
