/** Calls that wait for a person. */
import { ask, type Scenario, say } from '../scenario.ts';
import { asking } from '../stage.ts';
import { at } from './hooks.ts';

/** See the top of the file. */
export const APPROVALS: readonly Scenario[] = [
  {
    name: 'approval-allowed-and-denied',
    shows: 'a person allows a call, with arguments of their own, and denies the next, with a reason',
    turns: [ask(['haul', { ms: 100 }]), ask(['haul', { ms: 100 }]), say('As you wish.')],
    tools: ['haul'],
    async play(stage) {
      await stage.host();
      await stage.start({ permissions: asking('haul') });
      await stage.wait(5_000);
      // Edited arguments are held to the tool's schema, as the model's own are.
      await stage.send('approve', { call_id: 'c1_1', decision: 'allow', args: { ms: 'long' } });
      await stage.send('approve', { call_id: 'c1_1', decision: 'allow', args: { ms: 20 }, actor: 'mara' });
      await stage.send('approve', { call_id: 'c1_1', decision: 'deny' });
      await stage.wait(100);
      await stage.send('approve', { call_id: 'c2_1', decision: 'deny', reason: 'too steep', actor: 'mara' });
    },
  },
  {
    name: 'approval-of-three',
    shows: 'three calls are parked, a fourth runs: the last is allowed first, one is denied, one cancelled by its id',
    turns: [
      ask(['haul', { ms: 100 }], ['haul', { ms: 200 }], ['haul', { ms: 300 }], ['look', { at: 'the bow' }]),
      say('Done.'),
    ],
    tools: ['haul', 'look'],
    async play(stage) {
      await stage.host();
      await stage.start({ permissions: asking('haul') });
      await stage.send('approve', { call_id: 'c1_3', decision: 'allow' });
      await stage.send('approve', { call_id: 'c1_1', decision: 'deny' });
      await stage.send('cancel_call', { call_id: 'c1_2', reason: 'wrong line', actor: 'mara' });
      await stage.wait(500);
    },
  },
  {
    name: 'sequential-batch',
    shows: 'a batch with a sequential tool runs one call after another; a parked call holds back the one behind it',
    turns: [
      ask(['hoist', { ms: 50 }], ['look', { at: 'aloft' }], ['sound', { ms: 1 }], ['look', { at: 'aft' }]),
      say('Done.'),
    ],
    tools: ['hoist', 'look', 'sound'],
    async play(stage) {
      await stage.host();
      await stage.start({ permissions: asking('sound') });
      await stage.wait(100);
      await stage.send('approve', { call_id: 'c1_3', decision: 'deny' });
    },
  },
  {
    name: 'approval-aborted',
    shows: 'the run is cancelled while calls are parked and one runs: approvals are aborted, a late allow is rejected',
    turns: [ask(['haul', { ms: 100 }], ['sound', { ms: 100 }], ['haul', { ms: 200 }])],
    tools: ['haul', 'sound'],
    async play(stage) {
      await stage.host();
      await stage.start({ permissions: asking('haul') });
      await stage.send('cancel', { reason: 'fog' });
      await stage.send('approve', { call_id: 'c1_1', decision: 'allow' });
    },
  },
  {
    name: 'approval-remembered',
    shows:
      'decisions are remembered: the same call runs unasked, or is refused, another asks; once a rule is revoked its call asks again',
    turns: [
      ask(['haul', { ms: 20 }]),
      ask(['haul', { ms: 20 }], ['haul', { ms: 30 }]),
      ask(['haul', { ms: 30 }]),
      ask(['haul', { ms: 20 }]),
      say('Done.'),
    ],
    tools: ['haul'],
    async play(stage) {
      await stage.host();
      await stage.start({ permissions: asking('haul') });
      const rule = await stage.send('approve', {
        call_id: 'c1_1',
        decision: 'allow',
        remember: 'session',
        actor: 'mara',
        reason: 'short hauls',
      });
      await stage.wait(100);
      await stage.send('revoke', { command_id: rule, actor: 'mara' });
      await stage.send('revoke', { command_id: rule });
      await stage.send('approve', { call_id: 'c2_2', decision: 'deny', remember: 'persona', actor: 'mara' });
      await stage.wait(100);
      await stage.send('cancel', { reason: 'enough' });
    },
  },
  {
    name: 'approval-expired',
    shows: 'of two calls that wait an hour one is allowed in time, the other expires; who comes later is told so',
    // Both are due in the same moment.
    racing: true,
    turns: [ask(['haul', { ms: 10 }], ['haul', { ms: 20 }]), say('Then not.')],
    tools: ['haul'],
    async play(stage) {
      await stage.host();
      await stage.start({ permissions: { ...asking('haul'), expire_after_ms: 3_600_000 } });
      await stage.wait(60_000);
      await stage.send('approve', { call_id: 'c1_1', decision: 'allow', actor: 'mara' });
      await stage.wait(3_600_000);
    },
  },
  {
    name: 'approval-refused-by-a-hook',
    shows: 'OnApprovalRequested is told of two calls that wait: it refuses the one, a person allows the other',
    turns: [ask(['haul', { ms: 10 }], ['haul', { ms: 20 }]), say('Half of it.')],
    tools: ['haul'],
    hooks: [at('OnApprovalRequested', { deny: 'not while anchored' }, { pattern: 'call_id == "c1_2"' })],
    async play(stage) {
      await stage.host();
      await stage.start({ permissions: asking('haul') });
      await stage.wait(50);
      await stage.send('approve', { call_id: 'c1_1', decision: 'allow', actor: 'mara' });
      await stage.wait(100);
    },
  },
  {
    name: 'approval-edited',
    shows:
      'a person edits a call: a hook denies the first edit, the call stays parked, and it runs as the second edit says',
    turns: [ask(['haul', { ms: 10 }]), say('Hauled.')],
    tools: ['haul'],
    hooks: [
      at('PreToolUse', true, { id: 'look', pattern: 'haul' }),
      at('PreToolUse', { deny: 'too long' }, { id: 'limit', pattern: 'tool.args.ms =~ "^[0-9]{3}"', priority: 1 }),
    ],
    async play(stage) {
      await stage.host();
      await stage.start({ permissions: asking('haul') });
      await stage.wait(50);
      await stage.send('approve', { call_id: 'c1_1', decision: 'allow', args: { ms: 900 }, actor: 'mara' });
      await stage.wait(50);
      await stage.send('approve', { call_id: 'c1_1', decision: 'allow', args: { ms: 20 }, actor: 'mara' });
      await stage.wait(100);
    },
  },
  {
    name: 'approval-for-good',
    shows:
      'somebody outside is told of each call that waits, in vain the second time; the next run goes by what the persona remembers',
    turns: [
      ask(['haul', { ms: 20 }]),
      ask(['haul', { ms: 30 }]),
      say('Done.'),
      ask(['haul', { ms: 20 }]),
      say('Again.'),
    ],
    tools: ['haul'],
    remembers: true,
    notices: ['delivered', 'failed'],
    async play(stage) {
      await stage.host();
      await stage.start({ permissions: asking('haul') });
      await stage.wait(50);
      await stage.send('approve', { call_id: 'c1_1', decision: 'allow', remember: 'persona', actor: 'mara' });
      await stage.wait(50);
      await stage.send('approve', { call_id: 'c2_1', decision: 'deny' });
      await stage.wait(50);
      await stage.send('prompt', 'Once more.');
      await stage.wait(50);
    },
  },
];
