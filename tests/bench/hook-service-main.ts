/**
 * The hook service of the bench: module, address and token are its arguments. The same process answers the raw requests
 * that are measured beside it. It ends with whoever forked it.
 */
import { tmpdir } from 'node:os';
import { connectNats } from '@coxswain/adapter-nats';
import { startHooksService } from '@coxswain/hooks';
import { answerSizedRequests } from './raw-path.ts';

const [file = '', servers = '', token] = process.argv.slice(2);
const service = await startHooksService({ file, nats: { servers, token }, stateDir: tmpdir(), log: 'silent' });
const raw = await connectNats({ servers, token, name: 'bench-raw' });
answerSizedRequests(raw);
await raw.flush();
process.once('SIGTERM', () => void Promise.all([service.stop(), raw.close()]).then(() => process.exit(0)));
process.once('disconnect', () => process.exit(0));
process.send?.('ready');
