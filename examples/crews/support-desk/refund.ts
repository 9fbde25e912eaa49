/** The desk's refunds, as a process of their own: `cox serve tools ./refund.ts`. The ledger lies where no agent can write. */
import { refundTool } from './refund-tool.ts';

export default refundTool('input/desk/orders.csv', 'work/ledger');
