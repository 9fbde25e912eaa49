/** One agent_start and one agent_end per run, one turn_end per turn, one message_complete per answer; nothing outside of a run. */
import type { Checker } from './check.ts';
import { eventsOf } from './check.ts';
import { isBrokenOff } from './origin.ts';

/** See the top of the file. */
export const checkRuns: Checker = (journal, { ended }) => {
  const wrong: string[] = [];
  let run = 0;
  let started = false;
  let isOpen = false;
  let turn = 0;
  let turnOpen = false;
  let answers = 0;
  let failed = false;
  let stepFailed = false;
  for (const { n, event } of eventsOf(journal)) {
    switch (event.type) {
      case 'prompt_received':
        if (isOpen) wrong.push(`record ${n}: a prompt in the middle of run ${run}`);
        if (event.run !== run + 1) wrong.push(`record ${n}: run ${event.run} after ${run}`);
        ({ run } = event);
        isOpen = true;
        started = false;
        turn = 0;
        failed = false;
        break;
      case 'agent_start':
        if (started || !isOpen) wrong.push(`record ${n}: agent_start out of place`);
        started = true;
        break;
      case 'turn_start':
        if (turnOpen || !started) wrong.push(`record ${n}: turn_start out of place`);
        if (event.turn !== turn + 1) wrong.push(`record ${n}: turn ${event.turn} after ${turn}`);
        ({ turn } = event);
        turnOpen = true;
        answers = 0;
        stepFailed = false;
        break;
      case 'step_finished':
        // A model that fails in a step may have said nothing, and its run goes on.
        if (event.status === 'failed') stepFailed = true;
        break;
      case 'message_complete':
        if (!turnOpen || event.turn !== turn) wrong.push(`record ${n}: an answer outside of its turn`);
        answers++;
        break;
      case 'run_failed':
        failed = true;
        break;
      case 'budget_threshold':
        if (event.percent === 100) failed = true;
        break;
      case 'control_outcome':
        if (event.control === 'cancel' && event.status === 'cancelled') failed = true;
        break;
      case 'turn_end':
        if (!turnOpen || event.turn !== turn) wrong.push(`record ${n}: turn_end out of place`);
        if (answers > 1 || (answers === 0 && !failed && !stepFailed))
          wrong.push(`record ${n}: turn ${turn} has ${answers} answers`);
        turnOpen = false;
        break;
      case 'agent_end':
        if (!isOpen || !started || turnOpen) wrong.push(`record ${n}: agent_end out of place`);
        if (event.run !== run) wrong.push(`record ${n}: run ${event.run} ended in run ${run}`);
        isOpen = false;
        break;
      default:
        break;
    }
  }
  if (ended && isOpen && !isBrokenOff(journal)) wrong.push(`run ${run} has no end`);
  // Nothing that goes wrong here is ours: an exception of ours is a fault, however well the session got over it.
  for (const { n, input } of journal.records)
    if (input.type === 'session_failed') wrong.push(`record ${n}: ${input.error.code}: ${input.error.message}`);
  return wrong;
};
