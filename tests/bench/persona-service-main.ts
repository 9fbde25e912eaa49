/** One instance of a persona, for the bench: address, token, script and steps at once are its arguments. */
import { dirname } from 'node:path';
import { startPersonaService } from '@coxswain/personas';

const [servers = '', token, script = '', atOnce = '2'] = process.argv.slice(2);
const service = await startPersonaService({
  personas: [
    {
      definition: { name: 'bench', version: '1', model: `scripted/${script}`, permissions: { default: 'allow' } },
      folder: dirname(script),
    },
  ],
  nats: { servers, token },
  stepsAtOnce: Number(atOnce),
  stateDir: dirname(script),
  log: 'silent',
});
process.once('SIGTERM', () => void service.stop().then(() => process.exit(0)));
process.once('disconnect', () => process.exit(0));
process.send?.('ready');
