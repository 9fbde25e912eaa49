/** The scopes that commands need, over every transport. */
import { allowanceOf, parseBody, type Verb } from '@coxswain/protocol';
import { Problem } from '../context/mod.ts';
import { isAllowed, type Principal, type Scope } from './principal.ts';

/** The required scope, by verb. */
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

/**
 * Rejects a start that would run calls without approval, if the token may not approve calls. An invalid body passes:
 * sending it reports the error.
 * @param toRequestField maps a field of the body to its name in the request, if they differ.
 * @throws Problem `scope_missing` (403).
 */
export function expectMayAllow(principal: Principal, body: unknown, toRequestField = (field: string) => field): void {
  if (isAllowed(principal, VERB_SCOPES.approve)) return;
  const read = parseBody('start', body);
  if (!read.ok || read.verb !== 'start') return;
  const found = allowanceOf(read.body);
  if (found === null) return;
  const field = toRequestField(found);
  const what = field.endsWith('.command')
    ? 'starts a program on the host'
    : /\.headers\.[^.]+$/.test(field)
      ? 'sends a variable of the host to another server'
      : 'lets calls run';
  throw new Problem('scope_missing', `${field}: ${what} without an approval; this needs the scope approve`, {
    field,
  });
}

/**
 * Rejects a prompt with `if_running` if the token may not steer: such a prompt may become a steer.
 * @throws Problem `scope_missing` (403).
 */
export function expectMaySteer(principal: Principal, verb: Verb, body: object): void {
  if (verb !== 'prompt' || !('if_running' in body) || isAllowed(principal, VERB_SCOPES.steer)) return;
  throw new Problem('scope_missing', 'if_running: needs the scope steer', { field: 'if_running' });
}
