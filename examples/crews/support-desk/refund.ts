/** The refund tool in its own process: `cox serve tools ./refund.ts`. The ledger is where no agent can write. */
import { refundTool } from './refund-tool.ts';

export default refundTool('input/desk/orders.csv', 'work/ledger');
