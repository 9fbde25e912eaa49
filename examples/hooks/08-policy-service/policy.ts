/**
 * Decides from a document which calls may run: the first rule that matches holds, else the default. The document is
 * part of the module: when it is changed, the service loads both again, and a version that does not read is not taken.
 */
import { defineHooks } from '@coxswain/client';
import document from './policy.json' with { type: 'json' };
import { decide, readPolicy } from './rules.ts';

const policy = readPolicy(document);

export default defineHooks({
  // Before anything of a batch runs: what the policy denies is denied, whatever other rules would allow.
  gate_tool_calls: ({ calls }) =>
    calls.map((call) => {
      const { effect, reason } = decide(policy, call.name, call.args);
      return { allow: effect !== 'deny', reason };
    }),
  // Where a person would be asked: the policy answers, unless it says that the person should.
  permission_asked: ({ tool }) => {
    const { effect, reason } = decide(policy, tool.name, tool.args);
    return { decision: effect, reason };
  },
});
