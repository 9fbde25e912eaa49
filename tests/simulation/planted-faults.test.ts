/**
 * The checkers themselves: a fault is planted in the system, and the right one of them finds it. That they find nothing
 * where nothing is planted is asserted of the same seeds in `simulation.test.ts`.
 */
import type { StoredCommand } from '@coxswain/ports';
import { sessionRef } from '@coxswain/protocol';
import { describe, expect, test } from 'vitest';
import { NO_PLANT, type Plant } from './sim-bus.ts';
import { simulate } from './simulate.ts';

/** A plant, made anew for each seed. */
interface Planted {
  readonly fault: string;
  readonly plant: () => Partial<Plant>;
  /** The checkers that must find it; each of them in at least one of the seeds. */
  readonly foundBy: readonly string[];
  /** Seeds that are known to find it, tried first. Default: none. */
  readonly knownSeeds?: readonly number[];
}

const counting = () => {
  let count = 0;
  return (every: number) => ++count % every === 0;
};

const PLANTED: readonly Planted[] = [
  { fault: 'a tool is run twice for one call', plant: () => ({ runsPerCall: 2 }), foundBy: ['effects'] },
  {
    fault: 'a call that must not run again says that it may',
    plant: () => ({ traits: (_tool, traits) => ({ ...traits, idempotent: true }) }),
    foundBy: ['effects'],
    knownSeeds: [15],
  },
  {
    fault: 'instances do not answer what they are asked about a call',
    plant: () => ({ received: (text) => (text.includes('"want":"probe"') ? null : text) }),
    foundBy: ['workers'],
    knownSeeds: [23],
  },
  {
    fault: 'instances start requests that they must hold',
    plant: () => ({ received: (text) => text.replace(/,"hold":\d+}$/, '}') }),
    foundBy: ['effects'],
    knownSeeds: [108],
  },
  {
    fault: 'instances take no request that another one was sent before',
    plant: () => {
      const sent = new Set<string>();
      return {
        received: (text) => {
          const [, key = ''] = /"key":"([^"]+)"/.exec(text) ?? [];
          const isAgain = !text.includes('"want":"') && sent.has(key);
          sent.add(key);
          return isAgain ? null : text;
        },
      };
    },
    foundBy: ['questions', 'workers'],
    knownSeeds: [9, 97],
  },
  {
    fault: 'instances of personas cannot read what they are asked',
    plant: () => ({ received: (text) => text.replace('"args":{"request":', '"args":{"question":') }),
    foundBy: ['servedSteps'],
    knownSeeds: [27],
  },
  {
    fault: 'a command is dropped and acknowledged',
    plant: () => {
      const dropped = new Set<number>();
      const isNext = counting();
      const keep = (command: StoredCommand) => {
        if (command.verb !== 'start' && isNext(5)) dropped.add(command.seq);
        return !dropped.has(command.seq);
      };
      return { inboxRead: (commands) => commands.filter(keep) };
    },
    foundBy: ['commands'],
  },
  {
    fault: 'a command is delivered twice, under two names',
    plant: () => ({
      inboxRead: (commands) =>
        commands.flatMap((command) =>
          command.verb === 'steer' ? [command, { ...command, commandId: `copy-${command.seq}` }] : [command],
        ),
    }),
    foundBy: ['commands'],
  },
  {
    fault: 'commands are read in the wrong order',
    plant: () => ({ inboxRead: (commands) => [...commands].reverse() }),
    foundBy: ['commands'],
  },
  {
    fault: 'the fence is not looked at: whoever appends is let in',
    plant: () => ({ append: async (append, _fence, newest) => append(await newest()) }),
    foundBy: ['chain', 'replay', 'deletion'],
    knownSeeds: [24, 52],
  },
  {
    fault: 'an append is acknowledged and not stored',
    plant: () => {
      const isNext = counting();
      return {
        append: async (append, fence) => (isNext(20) ? { status: 'stored', fence: fence + 1 } : append(fence)),
      };
    },
    foundBy: ['effects'],
  },
  {
    fault: 'a host takes up nothing when it starts',
    plant: () => ({ sessions: () => [] }),
    foundBy: ['liveness'],
    knownSeeds: [44],
  },
  {
    fault: 'a receipt says delivered when it is only accepted',
    plant: () => ({
      receipt: (receipt) => (receipt.stage === 'accepted' ? { ...receipt, stage: 'delivered' } : receipt),
    }),
    foundBy: ['receipts'],
  },
  {
    fault: 'a receipt is told of a record that is not there yet',
    plant: () => ({ receipt: (receipt) => (receipt.n === undefined ? receipt : { ...receipt, n: receipt.n + 1 }) }),
    foundBy: ['receipts'],
  },
  {
    fault: 'whoever deletes a session takes away another one',
    plant: () => ({ purged: (ref) => sessionRef(ref.sessionId === 's1' ? 's2' : 's1') }),
    foundBy: ['deletion'],
  },
  {
    fault: 'what comes behind a tombstone is told that there is no such session',
    plant: () => ({
      receipt: (receipt) => (receipt.code === 'session_deleted' ? { ...receipt, code: 'session_not_found' } : receipt),
    }),
    foundBy: ['deletion'],
  },
  {
    fault: 'the store forgets timers',
    plant: () => ({ timer: () => null }),
    foundBy: ['liveness'],
  },
  {
    fault: 'timers come before their time',
    plant: () => ({ timer: () => 0 }),
    foundBy: ['clocks'],
  },
  {
    fault: 'a model is not shown what users say in the middle of a run',
    plant: () => ({
      shown: (messages) => messages.filter(({ role }, index) => role !== 'user' || index === 0),
    }),
    foundBy: ['shown'],
  },
  {
    fault: 'a model is not shown its reminders',
    plant: () => ({ shown: (messages) => messages.filter(({ role }) => role !== 'reminder') }),
    foundBy: ['reminders'],
  },
  {
    fault: 'a model is not shown the results of its calls',
    plant: () => ({ shown: (messages) => messages.filter(({ role }) => role !== 'tool') }),
    foundBy: ['shown'],
  },
  {
    fault: 'a host says nothing of what waits and of what is shown',
    plant: () => ({ status: (status) => ({ ...status, pending: [], reminders: [] }) }),
    foundBy: ['fates', 'reminders'],
  },
];

const SEEDS = 40;

describe('the checkers find it when', () => {
  test.each(PLANTED.map((planted) => [planted.fault, planted] as const))(
    '%s',
    { timeout: 240_000 },
    async (_fault, planted) => {
      const missing = new Set(planted.foundBy);
      const others = Array.from({ length: SEEDS }, (_, i) => i + 1);
      for (const seed of [...(planted.knownSeeds ?? []), ...others]) {
        if (missing.size === 0) break;
        const { problems } = await simulate(seed, { ...NO_PLANT, ...planted.plant() });
        for (const { checker } of problems) missing.delete(checker);
      }
      expect([...missing]).toEqual([]);
    },
  );
});
