/** The hook service of the bench: module, address and token are its arguments. It ends with whoever forked it. */
import { tmpdir } from 'node:os';
import { startHooksService } from '@coxswain/hooks';

const [file = '', servers = '', token] = process.argv.slice(2);
const service = await startHooksService({ file, nats: { servers, token }, stateDir: tmpdir(), log: 'silent' });
process.once('SIGTERM', () => void service.stop().then(() => process.exit(0)));
process.once('disconnect', () => process.exit(0));
process.send?.('ready');
