/** A program with a hook of its own. What is its argument fails later: what the hook has begun, or what the program has. */

import { setTimeout as sleep } from 'node:timers/promises';
import { createHookRegistry } from '@coxswain/adapter-hooks';
import { watchUnhandledFailures } from '@coxswain/handlers/load';
import { sessionRef } from '@coxswain/protocol';

const failures: Readonly<Record<string, () => void>> = {
  rejects: () => void Promise.reject(new Error('later')),
  throws: () => void setTimeout(() => void raise(), 1),
};
const raise = () => {
  throw new Error('later');
};
const [whose, how = ''] = process.argv.slice(2);
const silent = () => undefined;
watchUnhandledFailures({
  debug: silent,
  info: silent,
  warn: silent,
  error: (fields, message) => console.info(`${message}: ${JSON.stringify(fields)}`),
});

const hooks = createHookRegistry();
const fail = failures[how] as () => void;
hooks.registerSessionHook('post_turn', (_payload, { feedback }) => {
  if (whose === 'hook') fail();
  else feedback('now');
});
const [registration] = hooks.table();
if (!registration) throw new Error('nothing is registered');
const request = {
  ref: sessionRef('s1'),
  effectId: '1-0',
  registration,
  payload: { event: 'post_turn' },
  transcript: () => [],
  // What a handler sets going in the program is the program's.
  onFeedback: fail,
};
console.info(JSON.stringify(await hooks.ask(request, new AbortController().signal)));
await sleep(50);
console.info('goes on');
