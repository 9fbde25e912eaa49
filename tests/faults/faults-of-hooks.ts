/** Faults of hooks: which hooks are asked, in which order, what a return means, what a failure means, what is recorded. */

import { runHookHandler } from '@coxswain/handlers';
import {
  type ConsultOutcome,
  inCallOrder,
  isHookFailure,
  isOpenJob,
  isWrongAnswer,
  pairingProblem,
  parseReturn,
  registeredTwice,
  registrationMatches,
} from '@coxswain/protocol';
import { argumentsProblem } from '@coxswain/protocol/validate-arguments';
import { decide, failsClosed } from '@coxswain/turn';
import { answerTo, consultHooks, endsChain, payloadAfter } from '../../libs/session/src/effects/consult-hooks.ts';
import { evolve } from '../../libs/turn/src/core/evolve.ts';
import { reachedThreshold } from '../../libs/turn/src/slices/budgets/budgets.ts';
import { nextToVet } from '../../libs/turn/src/slices/calls/batch.ts';
import { withAnnouncement } from '../../libs/turn/src/slices/hooks/announcements.ts';
import { hooksFor, isAsking, isHooked } from '../../libs/turn/src/slices/hooks/consult.ts';
import { decideConsult } from '../../libs/turn/src/slices/hooks/consult-outcome.ts';
import { jobsAfter } from '../../libs/turn/src/slices/hooks/jobs.ts';
import type { OpenConsult } from '../../libs/turn/src/slices/hooks/state.ts';
import { afterMessageCheck } from '../../libs/turn/src/slices/injections/message-hooks.ts';
import { awaitsVerdict, needsHookVerdict } from '../../libs/turn/src/slices/injections/waiting.ts';
import { hookReminders } from '../../libs/turn/src/slices/reminders/hook-reminders.ts';
import { isPointSkipped } from '../../libs/turn/src/slices/runs/ending.ts';
import { type Fault, fault } from './fault.ts';
import { evolves, nextSees } from './faults-of-runs.ts';

/** The machine sees another outcome of a consult. */
function consultSees(change: (outcome: ConsultOutcome, consult: OpenConsult) => Partial<ConsultOutcome>): Fault {
  return fault(
    decideConsult,
    (sound) => (context, outcome, atMs) =>
      sound(context, context.consult ? { ...outcome, ...change(outcome, context.consult) } : outcome, atMs),
  );
}

/** The machine ignores that a hook denied. */
function ignoresVeto(point: 'pre_suspend' | 'pre_compact'): Fault {
  return fault(
    evolve,
    (sound) => (context, event) =>
      event.type === 'hook_vetoed' && event.point === point ? { ...context, n: event.n } : sound(context, event),
  );
}

/** Hooks are asked in another way. */
function asks(change: (...asked: Parameters<typeof consultHooks>) => Parameters<typeof consultHooks>): Fault {
  return fault(
    consultHooks,
    (sound) =>
      (...asked) =>
        sound(...change(...asked)),
  );
}

/** By the test file that must find them. */
export const FAULTS_OF_HOOKS = {
  // ---- the machine ----
  'libs/turn/test/announcements.test.ts': {
    'a denial by PreToolUse is announced as a decision about permissions': fault(
      withAnnouncement,
      (sound) => (context, event) => sound({ ...context, consult: null }, event),
    ),
    'a budget threshold that only a hook names is not reported': fault(
      reachedThreshold,
      (sound) => (context) => sound({ ...context, hooks: [] }),
    ),
    'a reminder of a hook counts as one that a client sent': fault(
      hookReminders,
      (sound) =>
        (...asked) =>
          sound(...asked).map((event) => {
            if (event.type !== 'reminder_injected') return event;
            const { direct: _, ...sent } = event;
            return sent;
          }),
    ),
    'the first of several reminders with one key is shown': fault(
      hookReminders,
      (sound) => (context, consult, answers, atMs) => sound(context, consult, answers.toReversed(), atMs),
    ),
  },
  'tests/traces/golden-traces.test.ts': {
    'a turn starts before hooks are notified of the last one': nextSees(({ announcements }, leaf) => ({
      announcements: leaf === 'assistant_streaming.opening' ? [] : announcements,
    })),
    'a run ends before hooks are notified of all of it': nextSees(({ announcements }, leaf) => ({
      announcements: leaf === 'tearing_down.ending' ? [] : announcements,
    })),
    'a hook is asked although its condition does not hold': fault(
      hooksFor,
      (sound) => (context, point, target, _payload, step) => sound(context, point, target, undefined, step),
    ),
    'a finished job stays open': fault(
      jobsAfter,
      (sound) => (jobs, hook, receipt) => (isOpenJob(receipt) ? sound(jobs, hook, receipt) : jobs),
    ),
    'a reminder of a hook does not replace the shown one with its key': fault(
      hookReminders,
      (sound) =>
        (...asked) =>
          sound(...asked).filter(({ type }) => type !== 'reminder_deduped'),
    ),
  },
  'libs/turn/test/hooks-and-gate.test.ts': {
    'a hook that is registered during a consult is asked in it': fault(isAsking, () => () => true),
    'PreToolUse hooks see the last tool call of a batch first': fault(
      nextToVet,
      (sound) => (context, except) => sound({ ...context, calls: context.calls.toReversed() }, except),
    ),
    'a changed hook table has no effect on a run in progress': evolves('hooks_changed', (after, _, { hooks }) => ({
      ...after,
      hooks,
    })),
    'an unchanged hook table is recorded again': fault(decide, (sound) => (state, input, atMs) => {
      const { pinned } = state.context;
      if (input.type !== 'hooks_changed' || !pinned) return sound(state, input, atMs);
      const context = { ...state.context, pinned: { ...pinned, hooks_fingerprint: '' } };
      return sound({ ...state, context } as typeof state, input, atMs);
    }),
    'a late return counts for the open consult': consultSees((_, { effect_id }) => ({ effect_id })),
    'a return counts for the hook at its place, not for the hook that it names': consultSees(
      ({ answers }, { hooks }) => ({
        answers: answers.map((answer, place) => ({ ...answer, hook: hooks[place] ?? answer.hook })),
      }),
    ),
    'an invalid return has no effect where its hook fails open': fault(isWrongAnswer, () => () => false),
    'every hook fails open': fault(decideConsult, (sound) => ({ consult, ...context }, outcome, atMs) => {
      const open = consult && { ...consult, fail_open: consult.hooks };
      return sound({ ...context, consult: open }, outcome, atMs);
    }),
    'a blocked prompt reaches the model': fault(decideConsult, (sound) => (context, outcome, atMs) => {
      const decision = sound(context, outcome, atMs);
      if (decision.kind !== 'events') return decision;
      return { ...decision, events: decision.events.filter(({ type }) => type !== 'run_failed') };
    }),
    'rewritten arguments that do not fit the schema run': consultSees(() => ({ args_problem: undefined })),
    'an invalid return of a gate allows its tool call': consultSees(({ answers }) => ({
      answers: answers.map((answer) =>
        answer.verdict?.kind === 'gate'
          ? {
              ...answer,
              verdict: {
                kind: 'gate' as const,
                calls: answer.verdict.calls.map((call) => ('invalid' in call ? { allow: true } : call)),
              },
            }
          : answer,
      ),
    })),
  },
  'libs/turn/test/sleeping.test.ts': {
    'a session is suspended although a hook denied it': ignoresVeto('pre_suspend'),
  },
  'libs/turn/test/compaction.test.ts': {
    'compaction runs although a hook denied it': ignoresVeto('pre_compact'),
  },
  'libs/turn/test/message-hooks.test.ts': {
    'a hook that did not answer has no objection': consultSees(({ answers }, { hooks }) => ({
      answers: hooks.map((hook) => answers.find((answer) => answer.hook === hook) ?? { hook, not_run: true }),
    })),
    'a verdict about a replaced message counts for the new one': fault(
      afterMessageCheck,
      (sound) => (context, consult, outcome) => {
        const queued = [...context.pending, ...context.followups];
        const prompt = queued.find(({ command_id }) => command_id === consult.command_id)?.body ?? '';
        return sound(context, { ...consult, payload: { ...consult.payload, prompt } }, outcome);
      },
    ),
    'prompt hooks are asked about reminders': fault(
      awaitsVerdict,
      () => (context, injection) => !injection.allowed && needsHookVerdict(context, 'steer'),
    ),
  },
  'libs/turn/test/ending.test.ts': {
    'hooks of the end of a run are asked whatever its outcome': fault(
      isPointSkipped,
      () => (context, point) => !context.consult && !isHooked(context, point),
    ),
  },
  // ---- the session: asking hooks ----
  'libs/session/test/consult.test.ts': {
    'a veto does not end the chain': fault(endsChain, () => () => false),
    'a gate that denies one tool call of a batch ends the chain': fault(
      endsChain,
      (sound) => (verdict) =>
        verdict?.kind === 'gate' ? verdict.calls.some((call) => !('allow' in call && call.allow)) : sound(verdict),
    ),
    'a failure of a hook that fails closed does not end the chain': fault(failsClosed, () => () => false),
    'a failure of a hook that fails open ends the chain': fault(
      failsClosed,
      (sound) =>
        ({ consult }, answer) =>
          sound({ consult: consult && { ...consult, fail_open: [] } }, answer),
    ),
    'an invalid return of a hook that fails open does not end the chain': fault(
      failsClosed,
      (sound) => (recorded, answer) =>
        sound(recorded, answer) && recorded.consult?.fail_open?.includes(answer.hook) !== true,
    ),
    'a failure ends the chain also where hooks only observe': fault(
      failsClosed,
      (sound) =>
        ({ consult }, answer) =>
          sound({ consult: consult && { ...consult, point: 'PreToolUse' } }, answer),
    ),
    'the next hook does not see a rewrite': fault(payloadAfter, () => (payload) => payload),
    'rewritten arguments are not validated': fault(argumentsProblem, () => () => null),
    'every hook has the default timeout': asks((hooks, clock, consult, signal) => {
      const sleep: typeof clock.sleep = (_ms, ended) => clock.sleep(5_000, ended);
      return [hooks, Object.assign(Object.create(clock), { sleep }), consult, signal];
    }),
    'a handler is not aborted after its timeout': asks((hooks, clock, consult, signal) => {
      const { signal: never } = new AbortController();
      return [{ ask: (request) => hooks.ask(request, never) }, clock, consult, signal];
    }),
    'feedback of a handler counts after its timeout': asks((hooks, clock, consult, signal) => {
      const ask: typeof hooks.ask = (request, ended) =>
        hooks.ask({ ...request, onFeedback: (text) => consult.onFeedback(request.registration.id, text) }, ended);
      return [{ ask }, clock, consult, signal];
    }),
    'the journal does not hold which hooks a veto left out': fault(consultHooks, (sound) => async (...asked) => {
      const outcome = await sound(...asked);
      return { ...outcome, answers: outcome.answers.filter((answer) => !answer.not_run) };
    }),
  },
  'libs/session/test/diff.test.ts': {
    'the journal does not hold what a hook returned': fault(answerTo, (sound) => (...asked) => {
      const { raw: _, ...answer } = sound(...asked);
      return answer;
    }),
  },
  'libs/session/test/compaction.test.ts': {
    'the model sees a tool call without its result after a hook': fault(pairingProblem, () => () => null),
  },
  'libs/session/test/hooks-told.test.ts': {
    'a hook is asked although no instance serves it': asks((hooks, clock, consult, signal) => {
      const registrations = consult.registrations.map(({ unavailable: _, ...registration }) => registration);
      return [hooks, clock, { ...consult, registrations }, signal];
    }),
    'a registration does not limit the length of results': fault(
      answerTo,
      (sound) =>
        ({ max_output: _, ...registration }, ...asked) =>
          sound(registration, ...asked),
    ),
  },
  // ---- registrations and returns ----
  'libs/protocol/test/hook-registrations.test.ts': {
    'hooks are asked in the order of their registration, whatever their priority': fault(
      inCallOrder,
      () => (registrations) => [...registrations],
    ),
    'hooks of another agent are asked': fault(
      registrationMatches,
      (sound) =>
        ({ persona: _, ...registration }, occasion) =>
          sound(registration, occasion),
    ),
  },
  'libs/protocol/test/verdicts.test.ts': {
    'a gate that returns nothing has no objection': fault(
      parseReturn,
      (sound) => (point, raw, calls) =>
        raw === undefined ? { verdict: { kind: 'no_objection' }, reminders: [] } : sound(point, raw, calls),
    ),
    'false denies at every point': fault(
      parseReturn,
      (sound) => (point, raw, calls) =>
        raw === false ? { verdict: { kind: 'block' }, reminders: [] } : sound(point, raw, calls),
    ),
    'of the reminders of one return with one key the first is kept': fault(
      parseReturn,
      (sound) => (point, raw, calls) => {
        const parsed = sound(point, Array.isArray(raw) ? raw.toReversed() : raw, calls);
        return isHookFailure(parsed) ? parsed : { ...parsed, reminders: parsed.reminders.toReversed() };
      },
    ),
  },
  'libs/handlers/test/run-hook-handler.test.ts': {
    'an exception of a handler reaches its caller': fault(runHookHandler, (sound) => async (...asked) => {
      const reply = await sound(...asked);
      if (reply.status === 'failed' && reply.code === 'hook_threw') throw new Error(reply.message);
      return reply;
    }),
  },
  'libs/adapters/hooks/test/hook-registry.test.ts': {
    'one id is registered twice at one point': fault(registeredTwice, () => () => undefined),
  },
  'libs/adapters/hooks/test/combine-hooks.test.ts': {
    'sources of hooks are asked one after another, whatever the priorities': fault(
      inCallOrder,
      () => (registrations) => [...registrations],
    ),
  },
} satisfies { readonly [testFile: string]: { readonly [name: string]: Fault } };
