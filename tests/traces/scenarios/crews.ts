/** Sessions that work together: children that answer, fail, are cancelled and refused; messages, and where they stop. */
import { childIdOf, type JsonObject } from '@coxswain/protocol';
import { ask, type Scenario, say } from '../scenario.ts';
import { asking } from '../stage.ts';

/** A turn of the session that was told this. One script serves all. */
const told = (prompt: string, turn: JsonObject): JsonObject => ({ match: prompt, ...turn });
const LEAD = 'Take her out';
const lead = (turn: JsonObject) => told(LEAD, turn);
const delegate = (prompt: string, more: JsonObject = {}) => ['delegate', { persona: 'hand', prompt, ...more }] as const;
/** The child of the first call of the first answer. */
const FIRST = childIdOf('s1', '3-0');
const CREW: JsonObject = { personas: [{ name: 'hand', permissions: { default: 'allow' } }] };
const used = (input_tokens: number, output_tokens: number) => ({ usage: { input_tokens, output_tokens } });

/** See the top of the file. */
export const CREWS: readonly Scenario[] = [
  {
    name: 'crew-fan-out',
    shows:
      'three children work side by side, and their answers are the results of the calls, in the order in which they end',
    turns: [
      lead(ask(delegate('Sound.'), delegate('Look.'), delegate('Listen.'))),
      told('Sound', say('12 fathoms.', { delay_ms: 300 })),
      told('Look', say('Fog.', { delay_ms: 100 })),
      told('Listen', say('A bell.', { delay_ms: 200 })),
      lead(say('We wait.')),
    ],
    tools: ['crew'],
    racing: true,
    async play(stage) {
      await stage.host();
      await stage.start(CREW);
      await stage.wait(1_000);
    },
  },
  {
    name: 'crew-child',
    shows:
      'a child, in its own journal: who started it, the reminders that it is born with, and the report to its parent',
    turns: [
      lead(ask(['haul', { ms: 100 }])),
      lead(ask(delegate('Sound.'))),
      told('Sound', say('12 fathoms.', { delay_ms: 100 })),
      lead(say('We wait.')),
    ],
    tools: ['haul', 'crew'],
    session: childIdOf('s1', '6-0'),
    async play(stage) {
      await stage.host();
      await stage.start(CREW);
      await stage.send('remind', { body: 'Mind the tide.', propagate: 'all', mode: 'interrupt_immediate' });
      await stage.wait(1_000);
    },
  },
  {
    name: 'crew-child-fails',
    shows: 'a child that fails is an error result, with what it had said; the parent goes on',
    turns: [
      lead(ask(delegate('Sound.'))),
      told('Sound', { delay_ms: 100, text: 'The lead is', fail: { kind: 'server_error' } }),
      lead(say('Then without.')),
    ],
    tools: ['crew'],
    async play(stage) {
      await stage.host();
      await stage.start(CREW);
      await stage.wait(600_000);
    },
  },
  {
    name: 'crew-restarted',
    shows: 'the work of a child that fails is begun again by another, as often as was said',
    turns: [
      lead(ask(delegate('Sound.', { restart: 'on_failure', max_restarts: 2 }))),
      // Each child is a session of its own, so each meets this turn.
      told('Sound', { delay_ms: 100, fail: { kind: 'error' } }),
      lead(say('Then without.')),
    ],
    tools: ['crew'],
    async play(stage) {
      await stage.host();
      await stage.start(CREW);
      await stage.wait(10_000);
    },
  },
  {
    name: 'crew-cancelled',
    shows: 'a cancel goes down to a child that works: it is told durably, reports, and the parent ends after it',
    turns: [lead(ask(delegate('Sound.'))), told('Sound', say('12 fathoms.', { delay_ms: 60_000 }))],
    tools: ['crew'],
    async play(stage) {
      await stage.host();
      await stage.start(CREW);
      await stage.wait(1_000);
      await stage.send('cancel', { reason: 'storm' });
      await stage.wait(1_000);
    },
  },
  {
    name: 'crew-child-cancelled',
    shows: 'a child whose parent is cancelled, in its own journal',
    turns: [lead(ask(delegate('Sound.'))), told('Sound', say('12 fathoms.', { delay_ms: 60_000 }))],
    tools: ['crew'],
    session: FIRST,
    async play(stage) {
      await stage.host();
      await stage.start(CREW);
      await stage.wait(1_000);
      await stage.send('cancel', { reason: 'storm' });
      await stage.wait(1_000);
    },
  },
  {
    name: 'crew-refused-by-rule',
    shows: 'a child asks for what its parent may not do: refused by the parent’s rule, whatever its own say',
    turns: [
      lead(ask(delegate('Look.'))),
      told('Look', { ...ask(['look', { at: 'the harbour' }]), delay_ms: 100 }),
      lead(say('We wait.')),
      // What its rules refuse it is told as feedback.
      say('I may not.'),
    ],
    tools: ['look', 'crew'],
    session: FIRST,
    async play(stage) {
      await stage.host();
      await stage.start({
        personas: [{ name: 'hand', permissions: { rules: [{ tool: '*', action: 'allow' }] } }],
        permissions: { rules: [{ tool: 'look', action: 'deny' }], default: 'allow' },
      });
      await stage.wait(1_000);
    },
  },
  {
    name: 'crew-asks-in-the-child',
    shows: 'what the parent would have to ask about is asked about in the child, and a person decides there',
    turns: [
      lead(ask(delegate('Look.'))),
      told('Look', { ...ask(['look', { at: 'the harbour' }]), delay_ms: 100 }),
      told('Look', say('Clear.')),
      lead(say('We go.')),
    ],
    tools: ['look', 'crew'],
    session: FIRST,
    async play(stage) {
      await stage.host();
      await stage.start({
        personas: [{ name: 'hand', permissions: { default: 'allow' } }],
        permissions: asking('look'),
      });
      await stage.wait(1_000);
      await stage.send('approve', { call_id: 'c1_1', decision: 'allow' }, undefined, FIRST);
      await stage.wait(1_000);
    },
  },
  {
    name: 'crew-budget',
    shows: 'a child begins with a share of what is left, and what it has used counts; when all is used the run ends',
    turns: [
      lead({ ...ask(delegate('Sound.')), ...used(100, 100) }),
      told('Sound', { ...ask(['haul', { ms: 50 }]), delay_ms: 100, ...used(300, 90) }),
      lead({ ...ask(delegate('Look.')), ...used(200, 10) }),
      told('Look', { ...ask(['haul', { ms: 50 }]), delay_ms: 100, ...used(190, 40) }),
    ],
    tools: ['haul', 'crew'],
    async play(stage) {
      await stage.host();
      await stage.start({ ...CREW, limits: { tokens: 1_000 } });
      await stage.wait(1_000);
    },
  },
  {
    name: 'crew-limits',
    shows: 'no deeper than may be, and no more at once',
    turns: [
      lead(ask(delegate('Sound.'), delegate('Look.'))),
      told('Sound', say('12 fathoms.', { delay_ms: 100 })),
      lead(say('We wait.')),
    ],
    tools: ['crew'],
    async play(stage) {
      await stage.host();
      await stage.start({ ...CREW, limits: { children: 1 } });
      await stage.wait(1_000);
      await stage.start({ ...CREW, limits: { depth: 0 } }, 's2');
    },
  },
  {
    name: 'crew-crash',
    shows: 'the host dies once a child is asked for: the next one starts it, once',
    turns: [lead(ask(delegate('Sound.'))), told('Sound', say('12 fathoms.', { delay_ms: 100 })), lead(say('We wait.'))],
    tools: ['crew'],
    async play(stage) {
      await stage.host();
      stage.crashAfter(3);
      await stage.start(CREW);
      await stage.host('deck-2');
      await stage.wait(10_000);
    },
  },
  {
    name: 'crew-messages',
    shows:
      'messages of another session: a steer, a follow-up, and a prompt once the run has ended; each says whom it is from',
    turns: [
      lead(ask(['haul', { ms: 100 }])),
      told('come about', say('Aye.')),
      told('make fast', say('Fast.')),
      told('and now', ask(['send_message', { to: 's2', body: 'Done.' }])),
      told('and now', say('Told.')),
    ],
    tools: ['haul', 'crew'],
    async play(stage) {
      await stage.host();
      await stage.start({}, 's2');
      await stage.start();
      await stage.send('message', { from: 's2', hops: 1, body: 'come about' });
      await stage.send('message', { from: 's2', hops: 1, body: 'make fast', mode: 'followup' });
      await stage.wait(1_000);
      await stage.send('message', { from: 's2', hops: 2, body: 'and now?', mode: 'prompt' });
      await stage.wait(1_000);
    },
  },
  {
    name: 'crew-hops',
    shows: 'after 16 messages that have led to one another nothing more is sent, and nothing is taken in',
    turns: [
      lead(ask(['haul', { ms: 100 }])),
      told('and you', ask(['send_message', { to: 's2', body: 'And you?' }])),
      told('and you', say('Enough.')),
    ],
    tools: ['haul', 'crew'],
    async play(stage) {
      await stage.host();
      await stage.start();
      await stage.send('message', { from: 's2', hops: 16, body: 'and you?' });
      await stage.send('message', { from: 's2', hops: 17, body: 'and you?' });
      await stage.wait(1_000);
    },
  },
];
