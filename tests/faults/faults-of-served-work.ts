/** Faults of served work: when an instance starts it, when it moves, and what its end means. */
import { RunningWork, WorkLedger } from '@coxswain/bus';
import { type AskTraits, newAsk } from '../../libs/bus/src/served/open-ask.ts';
import { parseReport } from '../../libs/bus/src/served/reply-inbox.ts';
import { type Fault, fault, faultOfMethod } from './fault.ts';

/** The host asks with other traits. */
function asksWith(change: (traits: AskTraits) => Partial<AskTraits>): Fault {
  return fault(
    newAsk,
    (sound) =>
      (ask, ...more) =>
        sound({ ...ask, traits: { ...ask.traits, ...change(ask.traits) } }, ...more),
  );
}

/** By the test file that must find them. */
export const FAULTS_OF_SERVED_WORK = {
  'tests/contracts/served-matrix.test.ts': {
    'an instance starts a held call without an order': faultOfMethod(
      RunningWork,
      'take',
      (sound) =>
        function (this: RunningWork, { hold: _, ...request }, ...more) {
          sound.call(this, request, ...more);
        },
    ),
    'a call that is not idempotent moves to another instance': asksWith(() => ({ isRepeatable: true })),
    'a silent instance is waited for without a limit': asksWith(() => ({ silentAfterMs: Number.POSITIVE_INFINITY })),
  },
  'tests/contracts/served-work.test.ts': {
    'work that its instance gives up counts as cancelled': fault(parseReport, (sound) => (message, key) => {
      const report = sound(message, key);
      if (report?.type !== 'given_up') return report;
      const { message: _, ...about } = report;
      return { ...about, type: 'ended', status: 'cancelled', result: { content: [], is_error: true } };
    }),
    'an instance forgets the answers that it has sent': faultOfMethod(WorkLedger, 'find', () => () => null),
    'the answer of any instance counts for a step': asksWith(() => ({ isStreamed: false })),
    'work that ends its processes moves without a limit': asksWith(({ movesMax }) => ({
      movesMax: movesMax === 0 ? 0 : Number.POSITIVE_INFINITY,
    })),
  },
} satisfies { readonly [testFile: string]: { readonly [name: string]: Fault } };
