// A tool for `cox serve tools`. Each call waits for an approval.
import { defineTool } from '@coxswain/client';
import { z } from 'zod';

export default defineTool({
  name: 'refund',
  description: 'Refunds an amount of an order, in euros.',
  inputSchema: z.object({ order: z.string(), amount: z.number().positive() }),
  needsApproval: true,
  execute: ({ order, amount }) => `refunded ${amount} euros of ${order}`,
});
