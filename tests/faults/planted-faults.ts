/**
 * Faults that somebody could make, each a text of a source file and what would stand there instead. `npm run faults`
 * plants one after another and expects the suite of the file's room to catch each.
 */
import { FAULTS_OF_COPIES } from './faults-of-copies.ts';
import { FAULTS_OF_HOOKS } from './faults-of-hooks.ts';

/** Where faults are planted, and the suites that must catch them. */
export const SUITES = {
  turn: ['libs/turn', 'tests/traces'],
  session: ['libs/session'],
  protocol: ['libs/protocol'],
  'adapters/hooks': ['libs/adapters/hooks'],
} as const;

/** One fault. `find` stands exactly once in `file`, a source file of its room. */
export interface PlantedFault {
  readonly name: string;
  /** The folder in libs; the turn machine's where none is given. */
  readonly room?: keyof typeof SUITES;
  readonly file: string;
  readonly find: string;
  readonly instead: string;
}

/** The source file that a fault is planted in, from the root of the repository. */
export function sourceOf({ room = 'turn', file }: PlantedFault): string {
  return `libs/${room}/src/${file}`;
}

const FAULTS_OF_TURNS: readonly PlantedFault[] = [
  // ---- next.ts: what follows, and in which order ----
  {
    name: 'what was delivered is said before what was skipped has its result',
    file: 'slices/calls/run.ts',
    find: '  const skipped = context.skipping[0];\n',
    instead: '  const skipped = context.delivering.length > 0 ? undefined : context.skipping[0];\n',
  },
  {
    name: 'a checkpoint that delivers skips no call',
    file: 'slices/injections/seams.ts',
    find: 'const skips = delivered.length > 0 && skipped.length > 0;',
    instead: 'const skips = false;',
  },
  {
    name: 'a checkpoint skips calls without delivering anything',
    file: 'slices/injections/seams.ts',
    find: 'const skips = delivered.length > 0 && skipped.length > 0;',
    instead: 'const skips = skipped.length > 0;',
  },
  {
    name: 'a skipped call that is parked keeps its question open',
    file: 'slices/calls/run.ts',
    find: "if (row.status === 'parked') return { type: 'approval_decided', call_id: row.call_id, decision: 'superseded' };",
    instead: '',
  },
  {
    name: 'calls of unknown tools go on to hooks and gate',
    file: 'core/next.ts',
    find: '=> refuseMalformed(context) ?? dispatchCheckpoint(context)',
    instead: '=> dispatchCheckpoint(context)',
  },
  {
    name: 'a call starts before a denied one has its result',
    file: 'slices/calls/run.ts',
    find: '  if (refused) return refuse(context, refused);\n',
    instead: '  if (refused && !q.nextToStart(context)) return refuse(context, refused);\n',
  },
  {
    name: 'an aborted run leaves parked calls parked',
    file: 'slices/calls/run.ts',
    find: "if (row.status === 'parked') return { type: 'approval_decided', call_id: row.call_id, decision: 'aborted' };",
    instead: "if (row.status === 'parked') continue;",
  },
  {
    name: 'a turn that was skipped does not say so at its end',
    file: 'slices/runs/turns.ts',
    find: "...(context.dispatch_skipped ? { dispatch_skipped: true, skip_reason: 'interrupt_immediate' } : {}),",
    instead: '',
  },
  // ---- queries.ts: the rules ----
  {
    name: 'a queue is drained at the cap',
    file: 'slices/injections/seams.ts',
    find: "if ((seam === 'post_tool_dispatch' || seam === 'iteration_end') && isCapped(context)) return NOTHING;",
    instead: '',
  },
  {
    name: 'the cap lets one turn more through',
    file: 'slices/runs/continuation.ts',
    find: '>= (pinned?.max_turns ?? 1)',
    instead: '> (pinned?.max_turns ?? 1)',
  },
  {
    name: 'one at a time takes the newest',
    file: 'slices/injections/seams.ts',
    find: 'if (!context.unheard) return matching.slice(0, 1);',
    instead: 'if (!context.unheard) return matching.slice(-1);',
  },
  {
    name: 'one at a time is one for each seam',
    file: 'slices/injections/seams.ts',
    find: 'if (!context.unheard) return',
    instead: 'if (context.pinned) return',
  },
  {
    name: 'a seam delivers what its catalogue does not name',
    file: 'slices/injections/seams.ts',
    find: 'context.pending.filter((injection) => modes.includes(injection.mode))',
    instead: 'context.pending.filter((injection) => modes.length > 0)',
  },
  {
    name: 'a batch terminates although one of its calls failed',
    file: 'slices/calls/table.ts',
    find: "if (row.ended !== 'ok' || !context.tools[row.tool]?.terminates) return false;",
    instead: 'if (!context.tools[row.tool]?.terminates) return false;',
  },
  {
    name: 'denied calls keep a batch from terminating',
    file: 'slices/calls/table.ts',
    find: "if (row.ended === 'denied' || row.ended === 'skipped') continue;",
    instead: "if (row.ended === 'skipped') continue;",
  },
  {
    name: 'a batch of which everything was refused terminates',
    file: 'slices/calls/table.ts',
    find: '  return ran > 0;',
    instead: '  return true;',
  },
  {
    name: 'a sequential batch runs side by side',
    file: 'slices/calls/gate.ts',
    find: 'const limit = sequential ? 1 : (context.pinned?.parallel_calls ?? 1);',
    instead: 'const limit = context.pinned?.parallel_calls ?? 1;',
  },
  {
    name: 'a parked call of a sequential batch is overtaken',
    file: 'slices/calls/gate.ts',
    find: "else if (sequential && row.status === 'parked') heldBack = true;",
    instead: '',
  },
  // ---- turn-machine.ts, turn-guards.ts: ways and guards ----
  {
    name: 'steering delivered after a batch does not keep a terminating run going',
    file: 'machine/guards.ts',
    find: 'checkpoint(event).delivered === 0 && batchTerminates(context)',
    instead: 'batchTerminates(context)',
  },
  {
    name: 'the last decision is taken for one of several',
    file: 'machine/guards.ts',
    find: '=> !anyParkedBut(context, callOf(event) ?? null);',
    instead: '=> anyParkedBut(context, callOf(event) ?? null);',
  },
  {
    name: 'an interrupt waits for the open approvals',
    file: 'machine/chart.ts',
    find: "            steering_received: [to('pre_tool_dispatch', 'interrupts'), evolves],\n",
    instead: '            steering_received: evolves,\n',
  },
  {
    name: 'a wholly skipped batch passes post_tool_dispatch',
    file: 'machine/chart.ts',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the source's own text
    find: "              to(`${CHECK}.closing`, 'skips'),\n              to(`${EXECUTE}.post_tool_dispatch`, 'batch_has_ended'),",
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the source's own text
    instead: '              to(`${EXECUTE}.post_tool_dispatch`),',
  },
  {
    name: 'follow-ups go before steering',
    file: 'machine/chart.ts',
    find: "              to(STREAM, 'goes_on'),\n              to(DOWN, 'is_capped'),\n              to('follow_up', 'followup_waits'),",
    instead:
      "              to('follow_up', 'followup_waits'),\n              to(STREAM, 'goes_on'),\n              to(DOWN, 'is_capped'),",
  },
  {
    name: 'the cap is not looked at before follow-ups',
    file: 'machine/chart.ts',
    find: "              to(DOWN, 'is_capped'),\n              to('follow_up', 'followup_waits'),",
    instead: "              to('follow_up', 'followup_waits'),\n              to(DOWN, 'is_capped'),",
  },
  {
    name: 'a seam is left out: compaction is considered before iteration_start',
    file: 'machine/chart.ts',
    find: "evolves], turn_start: to('iteration_start') }",
    instead: "evolves], turn_start: to('pre_compact') }",
  },
  {
    name: 'an error ends in stopped',
    file: 'machine/chart.ts',
    find: "agent_end: [to('#session.failed', 'ends_in_error'), to('#session.stopped')]",
    instead: "agent_end: to('#session.stopped')",
  },
  // ---- evolve.ts and decide.ts: what is remembered, what is admitted ----
  {
    name: 'a repeated command is taken a second time',
    file: 'core/decide.ts',
    find: "if (previously !== undefined) return { kind: 'ignored', reason: 'repeated command', previously };",
    instead: '',
  },
  {
    name: 'a late outcome counts for whatever model call is open',
    file: 'slices/runs/answers.ts',
    find: 'if (context.model?.id !== outcome.effect_id) return late(outcome.effect_id);',
    instead: 'if (!context.model) return late(outcome.effect_id);',
  },
  {
    name: 'an edited call starts without asking hooks',
    file: 'slices/approvals/edited-calls.ts',
    find: '  if (hooksOn(context, row, args).length === 0) return',
    instead: '  return',
  },
  {
    name: 'a hook may rewrite what a person has edited',
    file: 'slices/approvals/edited-calls.ts',
    find: "if (verdict?.kind === 'rewrite_args' &&",
    instead: "if (verdict?.kind === 'deny' &&",
  },
  {
    name: 'a remembered rule answers for another definition',
    file: 'slices/approvals/remembered.ts',
    find: '.filter((rule) => bindingProblem(rule, holder) === null)',
    instead: '.filter((rule) => rule.persona === holder.persona)',
  },
  {
    name: 'a second decision overrules the first',
    file: 'slices/approvals/edited-calls.ts',
    find: '  if (row.decided) return alreadyDecided(input, row.decided);',
    instead: '  if (row.decided && row.status !== "ended") return alreadyDecided(input, row.decided);',
  },
  {
    name: 'a broken-off answer keeps its unfinished calls',
    file: 'slices/runs/answers.ts',
    find: "content: outcome.message.content.filter((part) => part.type !== 'call'), partial: true }",
    instead: 'content: outcome.message.content, partial: true }',
  },
  {
    name: 'what the approver wrote over the arguments is not what runs',
    file: 'slices/approvals/approvals.ts',
    find: '      ...(event.args ? { args: event.args } : {}),\n',
    instead: '',
  },
  {
    name: 'a crash while the model answers is not counted',
    file: 'slices/runs/owners.ts',
    find: 'restarts: model.restarts + 1',
    instead: 'restarts: model.restarts',
  },
  {
    name: 'what is delivered stays in the queue',
    file: 'slices/injections/seams.ts',
    find: 'pending: context.pending.filter((injection) => !ids.includes(injection.command_id)),',
    instead: 'pending: context.pending,',
  },
  {
    name: 'a daemon counts the turns of earlier jobs',
    file: 'slices/suspension/suspension.ts',
    find: '    turns_counted: 0,\n',
    instead: '',
  },
  {
    name: 'a failure after a failure hides the first',
    file: 'slices/runs/ending.ts',
    find: 'failure: context.failure ?? event.error,',
    instead: 'failure: event.error,',
  },
  // ---- budgets, windows, parking ----
  {
    name: 'a run that is ending still waits for its time',
    file: 'slices/suspension/timers.ts',
    find: 'return aborting ? null : {',
    instead: 'return {',
  },
  {
    name: 'a run ends for want of budget although its next prompt would be compacted',
    file: 'slices/budgets/budgets.ts',
    find: '  return passDue(atTurnEnd(context)) ? 0 : count.prompt_tokens;\n',
    instead: '  return count.prompt_tokens;\n',
  },
  {
    name: 'a refused prompt teaches nothing',
    file: 'slices/compaction/view-account.ts',
    find: 'if (refused_at === 0 || refused_at >= window) return { window, reserve };',
    instead: 'if (refused_at >= 0) return { window, reserve };',
  },
  {
    name: 'a call parks its session although a hook has made an error of it',
    file: 'slices/calls/hooked.ts',
    find: '...parkRequested(context, { call_id: row.call_id, status: end.status, result, park })',
    instead: "...parkRequested(context, { call_id: row.call_id, status: 'ok', result: row.returned.result, park })",
  },
  // ---- what waits, and what it ends ----
  {
    name: 'an interrupt that was taken back still ends the answer',
    file: 'slices/injections/preempt.ts',
    find: 'return context.preempting.filter(waits);',
    instead: 'return context.preempting;',
  },
  {
    name: 'an interrupt that came before a suspension was asked for ends it',
    file: 'slices/suspension/suspension.ts',
    find: 'interrupts === idOf(suspend) && ids.includes(command_id)',
    instead: 'ids.includes(command_id)',
  },
  {
    name: 'what collapses goes to the end of the queue',
    file: 'slices/injections/queue.ts',
    find: '(one.command_id === older ? [newer] : one === newer ? [] : [one])',
    instead: '(one.command_id === older ? [] : [one])',
  },
  {
    name: 'a control that is refused has no outcome',
    file: 'core/decision.ts',
    find: 'events: [event, outcome]',
    instead: 'events: [event]',
  },
];

/** All faults. */
export const PLANTED_FAULTS: readonly PlantedFault[] = [...FAULTS_OF_TURNS, ...FAULTS_OF_HOOKS, ...FAULTS_OF_COPIES];
