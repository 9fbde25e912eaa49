/** A session host as its users run it, for the bench of served personas: address, token and folder are its arguments. */
import { join } from 'node:path';
import { startSessionsService } from '@coxswain/sessions';

const [servers = '', token, folder = ''] = process.argv.slice(2);
const service = await startSessionsService({
  nats: { servers, token },
  stateDir: join(folder, 'state'),
  defaultRoot: folder,
  hostName: 'bench-personas',
  log: 'silent',
  trustsBus: true,
});
process.once('SIGTERM', () => void service.stop().then(() => process.exit(0)));
process.once('disconnect', () => process.exit(0));
process.send?.('ready');
