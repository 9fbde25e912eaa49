/** What a token must be allowed to send a command, whichever way it comes. */
import { allowanceOf, parseBody, type Verb } from '@coxswain/protocol';
import { Problem } from '../problem.ts';
import { isAllowed, type Principal, type Scope } from './principal.ts';

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

/**
 * Who may start sessions and may not approve calls starts none that approves them by itself. A body that is none is for the
 * client to refuse.
 * @param written the body's field as the request has it, where the request is no plain start.
 * @throws Problem `scope_missing`.
 */
export function expectMayAllow(principal: Principal, body: unknown, written = (field: string) => field): void {
  if (isAllowed(principal, VERB_SCOPES.approve)) return;
  const read = parseBody('start', body);
  if (!read.ok || read.verb !== 'start') return;
  const found = allowanceOf(read.body);
  if (found === null) return;
  const field = written(found);
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
 * A prompt that may become a steer needs the scope of both.
 * @throws Problem `scope_missing`.
 */
export function expectMaySteer(principal: Principal, verb: Verb, body: object): void {
  if (verb !== 'prompt' || !('if_running' in body) || isAllowed(principal, VERB_SCOPES.steer)) return;
  throw new Problem('scope_missing', 'if_running: needs the scope steer', { field: 'if_running' });
}
