/**
 * The sessions service, which hears of no other host and is heard by none: it takes every session for its own. Two of them
 * have nothing between them but the fence.
 */
import './end-with-harness.ts';
import { createMemoryBus, createSystemClock } from '@coxswain/adapter-memory';
import { startSessionsService } from '@coxswain/sessions';

const { NATS_URL, COX_STATE_DIR, COX_HOST_NAME } = process.env;
if (!NATS_URL || !COX_STATE_DIR) throw new Error('NATS_URL and COX_STATE_DIR are not set');
const service = await startSessionsService({
  nats: { servers: NATS_URL },
  stateDir: COX_STATE_DIR,
  hostName: COX_HOST_NAME,
  log: 'stdout',
  trustsBus: true,
  // A line in this process, with nobody else on it.
  hostChannel: createMemoryBus(createSystemClock()).createHostChannel(),
});
process.once('SIGTERM', () => void service.stop().then(() => process.exit(0)));
