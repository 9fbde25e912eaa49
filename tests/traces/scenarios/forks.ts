/** Forks: what a session is that begins with another's past. Each trace is the fork's own journal. */
import { ask, type Scenario, say } from '../scenario.ts';
import { asking, type Stage } from '../stage.ts';

const ORIGIN = 's0';

/** The session that is forked: one call, one answer. */
async function origin(stage: Stage): Promise<void> {
  await stage.host();
  await stage.start({ permissions: asking('haul') }, ORIGIN);
  await stage.send('approve', { call_id: 'c1_1', decision: 'allow' }, undefined, ORIGIN);
  await stage.wait(100);
}

/** See the top of the file. */
export const FORKS: readonly Scenario[] = [
  {
    name: 'fork-at-a-decision',
    shows: 'a fork in the middle of a parked batch: the call is refused there, as it was allowed in its origin',
    turns: [ask(['haul', { ms: 50 }]), say('Then not.')],
    tools: ['haul'],
    async play(stage) {
      await origin(stage);
      await stage.fork(ORIGIN, 3);
      await stage.send('approve', { call_id: 'c1_1', decision: 'deny', reason: 'the rope is wet' });
      await stage.wait(100);
    },
  },
  {
    name: 'fork-with-another-model',
    shows: 'a fork in the middle of a run, on another model: it is resolved before the run goes on',
    turns: [ask(['haul', { ms: 50 }]), say('Hauled.')],
    tools: ['haul'],
    async play(stage) {
      await origin(stage);
      await stage.fork(ORIGIN, 4, { model: 'scripted/deck.yaml', persona: { name: 'bosun' } });
      await stage.wait(100);
    },
  },
  {
    name: 'fork-prompted-anew',
    shows: 'a fork of a session that has ended, with what it is prompted with next; a fork of that fork',
    turns: [ask(['haul', { ms: 50 }]), say('Hauled.'), say('And stowed.')],
    tools: ['haul'],
    async play(stage) {
      await origin(stage);
      await stage.fork(ORIGIN, null, { prompt: 'Stow it.' }, 'middle');
      await stage.wait(100);
      await stage.fork('middle', null);
      await stage.wait(100);
    },
  },
  {
    name: 'fork-of-a-veto',
    shows: 'a fork at the veto of a hook, with the other verdict: the call runs',
    turns: [ask(['haul', { ms: 50 }]), say('Done.')],
    tools: ['haul'],
    hooks: [{ registration: { id: 'policy', point: 'PreToolUse' }, returns: { deny: 'not in this wind' } }],
    async play(stage) {
      await stage.host();
      await stage.start({}, ORIGIN);
      await stage.wait(100);
      await stage.fork(ORIGIN, 4, { verdicts: { policy: true } });
      await stage.wait(100);
    },
  },
  {
    name: 'fork-of-what-is-gone',
    shows: 'the host crashes while it copies, and its origin is deleted meanwhile: the fork ends, and says why',
    turns: [ask(['haul', { ms: 50 }]), say('Hauled.')],
    tools: ['haul'],
    async play(stage) {
      await origin(stage);
      stage.crashAfter(4);
      await stage.fork(ORIGIN, 6);
      stage.delete(ORIGIN);
      await stage.host('relief');
      await stage.wait(10_000);
    },
  },
];
