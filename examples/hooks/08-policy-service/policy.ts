/**
 * Decides by a document which calls may run: the first rule that matches applies, otherwise the default. The module
 * imports the document. After a change of the document the service loads both again, and rejects an invalid version.
 */
import { allow, ask, defineHooks, deny } from '@coxswain/client';
import document from './policy.json' with { type: 'json' };
import { decide, readPolicy } from './rules.ts';

const policy = readPolicy(document);

export default defineHooks({
  // Asked before any call of a batch runs. A denial here applies, whatever other rules allow.
  GateToolCalls: ({ calls }) =>
    calls.map((call) => {
      const { effect, reason } = decide(policy, call.name, call.args);
      return effect === 'deny' ? deny(reason) : allow();
    }),
  // Asked before a person. The policy answers, unless its rule says that a person decides.
  PermissionAsked: ({ tool }) => {
    const { effect, reason } = decide(policy, tool.name, tool.args);
    if (effect === 'ask') return ask(reason);
    return effect === 'deny' ? deny(reason) : allow();
  },
});
