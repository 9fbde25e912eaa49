/**
 * The sessions service as a separate process. `NATS_URL` is the address of the bus, and `NATS_NKEY` the file of the
 * host's key. SIGINT and SIGTERM stop it cleanly.
 */
import { homedir } from 'node:os';
import { join } from 'node:path';
import { readSeedFile } from '@coxswain/adapter-nats';
import { startSessionsService } from './start-sessions-service.ts';

const { env } = process;
const servers = env.NATS_URL?.trim();
if (!servers) {
  process.stderr.write('sessions: NATS_URL is not set; set it to the address of the bus: nats://[token@]host:port\n');
  process.exit(2);
}
const service = await startSessionsService({
  nats: { servers, credentials: env.NATS_NKEY ? await readSeedFile(env.NATS_NKEY) : undefined },
  stateDir: env.COX_STATE_DIR ?? join(homedir(), '.local/state/coxswain'),
  hostName: env.COX_HOST_NAME,
  log: 'stdout',
}).catch((error: Error) => {
  process.stderr.write(`sessions: ${error.message}\n`);
  process.exit(1);
});
let stopping = false;
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  // A second signal ends the process immediately.
  process.once(signal, () => {
    stopping = true;
    void service.stop().then(() => process.exit(0));
  });
}
void service.failed.then(async (error) => {
  // `stop` closes the connection, which resolves `failed` too.
  if (stopping) return;
  process.stderr.write(`sessions: ${error.message}\n`);
  await service.stop();
  process.exit(1);
});
