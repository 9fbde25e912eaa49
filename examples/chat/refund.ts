// A tool for `cox serve tools`. Without a rule for it, each call waits for an approval.
import { defineTool } from '@coxswain/client';
import { z } from 'zod';

export default defineTool({
  name: 'refund',
  description: 'Refunds an amount of an order, in euros.',
  schema: z.object({ order: z.string(), amount: z.number().positive() }),
  run: ({ order, amount }) => `refunded ${amount} euros of ${order}`,
});
