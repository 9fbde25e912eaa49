/** What a token must be allowed to send a command, whichever way it comes. */
import type { Verb } from '@coxswain/protocol';
import type { Scope } from './principal.ts';

/** By verb. */
export const VERB_SCOPES: Readonly<Record<Verb, Scope>> = {
  start: 'run',
  prompt: 'run',
  steer: 'steer',
  remind: 'steer',
  followup: 'steer',
  approve: 'approve',
  cancel: 'run',
  cancel_call: 'steer',
  suspend: 'run',
  resume: 'run',
  signal: 'run',
  revoke: 'steer',
  replace: 'steer',
  delete: 'admin',
};
