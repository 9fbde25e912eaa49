/** The sessions service, loaded, and started by the first line on standard input. */
import { once } from 'node:events';
import { startSessionsService } from '@coxswain/sessions';

const { NATS_URL, COX_STATE_DIR } = process.env;
if (!NATS_URL || !COX_STATE_DIR) throw new Error('NATS_URL and COX_STATE_DIR are not set');
// Without whoever started it, it has no purpose.
process.stdin.on('end', () => process.exit(0));
process.stdout.write('loaded\n');
await once(process.stdin, 'data');
process.stdin.resume();
await startSessionsService({ nats: { servers: NATS_URL }, stateDir: COX_STATE_DIR, log: 'stdout' });
