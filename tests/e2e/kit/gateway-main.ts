/** A gateway that can be asked how much memory it holds when everything is taken away that nobody needs. */
import { createInterface } from 'node:readline';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { type GatewayServiceOptions, startGatewayService } from '@coxswain/gateway';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;
const say = (line: object) => process.stdout.write(`${JSON.stringify(line)}\n`);

const options = JSON.parse(process.env.GATEWAY_OPTIONS ?? '{}') as GatewayServiceOptions;
const { port, stop } = await startGatewayService({ ...options, log: 'silent' });
say({ type: 'ready', port });
const orders = createInterface({ input: process.stdin });
orders.on('line', () => {
  collect();
  const { heapUsed, external } = process.memoryUsage();
  say({ type: 'held', bytes: heapUsed + external });
});
orders.once('close', () => void stop());
