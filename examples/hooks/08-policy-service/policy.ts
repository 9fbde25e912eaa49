/**
 * Decides from a document which calls may run: the first rule that matches holds, else the default. The document is
 * part of the module: when it is changed, the service loads both again, and a version that does not read is not taken.
 */
import { allow, ask, defineHooks, deny } from '@coxswain/client';
import document from './policy.json' with { type: 'json' };
import { decide, readPolicy } from './rules.ts';

const policy = readPolicy(document);

export default defineHooks({
  // Before anything of a batch runs: what the policy denies is denied, whatever other rules would allow.
  GateToolCalls: ({ calls }) =>
    calls.map((call) => {
      const { effect, reason } = decide(policy, call.name, call.args);
      return effect === 'deny' ? deny(reason) : allow();
    }),
  // Where a person would be asked: the policy answers, unless it says that the person should.
  PermissionAsked: ({ tool }) => {
    const { effect, reason } = decide(policy, tool.name, tool.args);
    if (effect === 'ask') return ask(reason);
    return effect === 'deny' ? deny(reason) : allow();
  },
});
