/** Faults of replays, forks and imports: what is recomputed, what is copied, and what must not be. */
import { JournalReplay, ReplayDivergedError } from '@coxswain/session';
import { upcastToNewest } from '../../libs/protocol/src/journal/record-upcasts.ts';
import { endsChain } from '../../libs/session/src/effects/consult-hooks.ts';
import { buildCopyInput, copiedInputs } from '../../libs/session/src/journal/copy-journal.ts';
import { isUnfinishedImport } from '../../libs/session/src/journal/copy-state.ts';
import { machineOf, rejectUnreplayable } from '../../libs/session/src/journal/machine-version.ts';
import { planFork } from '../../libs/session/src/journal/plan-fork.ts';
import {
  changedSettings,
  copiedFrom,
  decideAfterCopy,
  ownedAfterCopy,
} from '../../libs/turn/src/slices/copies/copies.ts';
import { type Fault, fault, faultOfMethod } from './fault.ts';

/** By the test file that must find them. */
export const FAULTS_OF_COPIES = {
  'libs/session/test/replay.test.ts': {
    'a replay accepts a record that differs': faultOfMethod(
      JournalReplay,
      'take',
      (sound) =>
        async function (this: JournalReplay, bytes, read) {
          const recorded = read ?? (await this.read(bytes));
          return sound.call(this, bytes, recorded).catch((error: unknown) => {
            if (error instanceof ReplayDivergedError) return recorded;
            throw error;
          });
        },
    ),
  },
  'libs/session/test/earlier-releases.test.ts': {
    'a replay names this machine version for a run of an earlier one': fault(machineOf, () => () => undefined),
  },
  'libs/protocol/test/record-upcasts.test.ts': {
    'a record of an earlier version is read as one of today': fault(upcastToNewest, () => (record, newest) => ({
      ...record,
      v: newest,
    })),
  },
  'libs/session/test/fork.test.ts': {
    'a fork does not keep the times of its origin': fault(
      copiedInputs,
      (sound) =>
        async function* (...asked) {
          for await (const copied of sound(...asked)) yield { ...copied, at: '2026-01-01T00:00:00.000Z' };
        },
    ),
    'a fork that resumes does not check its origin': fault(
      copiedInputs,
      (sound) =>
        async function* (blobs, origin, copy, after, before) {
          for await (const copied of sound(blobs, origin, copy, 0, before)) if (copied.n > after) yield copied;
        },
    ),
    'the outcome of a tool call that only the changed record starts is unknown': fault(
      planFork,
      (sound) =>
        async (...asked) => {
          const plan = await sound(...asked);
          return 'problem' in plan ? plan : { ...plan, unsent: undefined };
        },
    ),
    'a changed veto does not end the chain': fault(endsChain, () => () => false),
  },
  'libs/session/test/import.test.ts': {
    'a replay accepts the journal of an unknown machine version': fault(rejectUnreplayable, () => () => undefined),
    'a copy answers to the receipt address of its origin': fault(
      buildCopyInput,
      () => (input, copy) => (copy && input.type === 'command' ? { ...input, copied_from: copy } : input),
    ),
    'an interrupted import takes commands': fault(isUnfinishedImport, () => () => false),
  },
  'libs/turn/test/forks.test.ts': {
    'a fork does not name its origin': fault(copiedFrom, () => () => []),
    'a tool call that was sent for the origin belongs to the fork': fault(
      ownedAfterCopy,
      (sound) => (context, event, setBudgetTimer) =>
        sound(context, { ...event, unsent: context.calls.map(({ call_id }) => call_id) }, setBudgetTimer),
    ),
    'the time between a record and its fork counts': fault(
      ownedAfterCopy,
      (sound) => (context, event, setBudgetTimer) => sound({ ...context, at_ms: event.at_ms }, event, setBudgetTimer),
    ),
    'another model is resolved while the run continues': fault(decideAfterCopy, (sound) => (state, input) => {
      const decision = sound(state, input);
      if (decision.kind !== 'events') return decision;
      const withoutWait = decision.events.map((event) => {
        if (event.type !== 'settings_changed') return event;
        const { reprovisions: _, ...rest } = event;
        return rest;
      });
      return { ...decision, events: withoutWait };
    }),
    'another model gets the address of the one before': fault(changedSettings, (sound) => (settings, changes) => ({
      ...settings,
      ...sound(settings, changes),
    })),
  },
} satisfies { readonly [testFile: string]: { readonly [name: string]: Fault } };
