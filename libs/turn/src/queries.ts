/** Questions to the context, in the words of the rules. Guards, `next` and `decide` all ask through these. */
import {
  HOOK_RETURNS,
  type HookPoint,
  type HookRegistration,
  isOfPersona,
  type JsonObject,
  type Mode,
  type PinnedPermissions,
  type Ruling,
  registrationMatches,
  ruleOn,
  SEAMS,
  type SeamKind,
} from '@coxswain/protocol';
import { uncoveredAnswer } from './budgets.ts';
import type { CallRow, PendingFollowup, PendingInjection, SessionContext } from './context.ts';
import { personaOfTurn, waitsForBatch } from './handoff.ts';
import { rememberedRuling } from './remembered.ts';
import { openStep, stepHasEnded, stepsAreLeft } from './steps.ts';
import { needsRepair } from './structured-output.ts';

/**
 * The registrations that a point consults, in order.
 * @param target what their globs are held against.
 * @param payload without it, those whose conditions it may meet are among them.
 * @param step the step in which the point is, where it is another than the open one.
 */
export function hooksFor(
  context: SessionContext,
  point: HookPoint,
  target: string,
  payload?: JsonObject,
  step: string | undefined = openStep(context)?.name,
): readonly HookRegistration[] {
  if (context.hooks.length === 0) return NONE;
  const occasion = { persona: personaOfTurn(context), target, step, payload };
  const asked = context.hooks.filter((hook) => hook.point === point && registrationMatches(hook, occasion));
  // A condition is held against the payload as a persona's own hooks leave it, which nobody knows yet.
  const isRewritten = REWRITTEN.has(point) && asked.some((hook) => isOfPersona(hook) && hook.deny === undefined);
  if (payload === undefined || !isRewritten) return asked;
  const unknown = { ...occasion, payload: undefined };
  return context.hooks.filter(
    (hook) => hook.point === point && registrationMatches(hook, isOfPersona(hook) ? occasion : unknown),
  );
}
const NONE: readonly HookRegistration[] = [];
/** Points whose payload a hook may change for those behind it. */
const REWRITTEN: ReadonlySet<HookPoint> = new Set(
  [HOOK_RETURNS.args, HOOK_RETURNS.result, HOOK_RETURNS.output].flatMap(({ points }): readonly HookPoint[] => points),
);

/** Whether a point of the session itself is hooked. */
export function isHooked(context: SessionContext, point: HookPoint): boolean {
  return context.hooks.length > 0 && hooksFor(context, point, personaOfTurn(context)).length > 0;
}

/** The row of a call in the newest batch. */
export function callRow(context: SessionContext, callId: string): CallRow | undefined {
  return context.calls.find((row) => row.call_id === callId);
}

/** Rows that have no result yet. */
export function openCalls(context: SessionContext): readonly CallRow[] {
  return context.calls.filter((row) => row.status !== 'ended');
}

/** Whether every call but this one has its result. */
export function allEndedBut(context: SessionContext, callId: string | null): boolean {
  return context.calls.every((row) => row.status === 'ended' || row.call_id === callId);
}

/** Whether a call waits for a person, this one aside. */
export function anyParkedBut(context: SessionContext, callId: string | null): boolean {
  return context.calls.some((row) => row.status === 'parked' && row.call_id !== callId);
}

/** Whether a call is being run by the outside world. */
export function isInFlight(row: CallRow): boolean {
  return row.status === 'running';
}

/** What the rules, a hook's grant and a person's decision together say of a call. */
export function rulingOn(context: SessionContext, row: CallRow): Ruling {
  if (row.decided?.decision === 'allow') return { action: 'allow', rule: 'user' };
  const permissions = context.pinned?.permissions;
  if (!permissions) return { action: 'deny', rule: 'default' };
  const ruling = ruledOn(permissions, row);
  // A hook, and what was decided in advance, can answer a question; neither can overrule a rule that refuses.
  const known = ruling.action === 'ask' ? rememberedRuling(context, row) : null;
  if (known) return known;
  if (ruling.action === 'ask' && row.granted_by) return { action: 'allow', rule: row.granted_by };
  return ruling;
}

// Guards and `next` ask the same of every row again and again; a row and a persona's rules are never changed in place,
// so the first answer is kept with the row. A batch of 64 under 256 rules took two seconds without this.
const rulings = new WeakMap<CallRow, { readonly permissions: PinnedPermissions; readonly ruling: Ruling }>();

function ruledOn(permissions: PinnedPermissions, row: CallRow): Ruling {
  const known = rulings.get(row);
  if (known?.permissions === permissions) return known.ruling;
  const ruling = ruleOn(permissions, row.tool, row.args);
  rulings.set(row, { permissions, ruling });
  return ruling;
}

/** The next call, in call order, that PreToolUse hooks must see, this one aside. */
export function nextToVet(context: SessionContext, except?: string): CallRow | undefined {
  if (context.hooks.length === 0) return undefined;
  return context.calls.find(
    (row) =>
      row.status === 'proposed' &&
      !row.vetted &&
      row.call_id !== except &&
      hooksFor(context, 'PreToolUse', row.tool).length > 0,
  );
}

/** The next call, in call order, of which the rules say `ask` and that permission_asked hooks must see, this one aside. */
export function nextToAsk(context: SessionContext, except?: string): CallRow | undefined {
  if (context.hooks.length === 0) return undefined;
  return context.calls.find(
    (row) =>
      row.status === 'proposed' &&
      !row.asked &&
      row.call_id !== except &&
      hooksFor(context, 'permission_asked', row.tool).length > 0 &&
      rulingOn(context, row).action === 'ask',
  );
}

/** Whether the batch runs one call after another. */
export function isSequential(context: SessionContext): boolean {
  return context.calls.some((row) => context.tools[row.tool]?.sequential);
}

/** Whether a call may start as far as rules and people are concerned. */
export function isAllowed(context: SessionContext, row: CallRow): boolean {
  return (
    row.status === 'allowed' ||
    (row.status === 'proposed' && !row.problem && !row.decided && rulingOn(context, row).action === 'allow')
  );
}

/** The next call that may start now: in call order, within the limit on parallel calls; `except` counts as ended. */
export function nextToStart(context: SessionContext, except?: string): CallRow | undefined {
  if (context.aborting) return undefined;
  const sequential = isSequential(context);
  const limit = sequential ? 1 : (context.pinned?.parallel_calls ?? 1);
  let busy = 0;
  let candidate: CallRow | undefined;
  let heldBack = false;
  for (const row of context.calls) {
    if (row.call_id === except || row.status === 'ended') continue;
    if (row.status === 'running' || row.status === 'returned') busy++;
    // In a sequential batch a call that waits for a person holds back those behind it.
    else if (sequential && row.status === 'parked') heldBack = true;
    else if (!candidate && !heldBack && isAllowed(context, row) && !waitsForBatch(context, row, except))
      candidate = row;
  }
  return busy < limit ? candidate : undefined;
}

/** Whether the end of a call that ran makes room for one that was held back. */
export function makesRoom(context: SessionContext, callId: string): boolean {
  const row = callRow(context, callId);
  return (row?.status === 'running' || row?.status === 'returned') && nextToStart(context, callId) !== undefined;
}

/** Whether a question about a call that ran lets one go on that was held back. In a sequential batch it holds the rest back. */
export function goesOnWithout(context: SessionContext, callId: string): boolean {
  return callRow(context, callId)?.status === 'running' && !isSequential(context) && makesRoom(context, callId);
}

/** Whether an interrupt waits for a seam. */
export function interruptWaits(context: SessionContext): boolean {
  return context.pending.some(({ mode }) => mode === 'interrupt_immediate');
}

/** The next call that rules or a person have refused, and that has no result yet. */
export function nextToRefuse(context: SessionContext): CallRow | undefined {
  return context.calls.find(
    (row) =>
      row.status === 'proposed' &&
      !row.problem &&
      (row.decided?.decision === 'deny' || (!row.decided && rulingOn(context, row).action === 'deny')),
  );
}

/** The next call that needs a person. */
export function nextToPark(context: SessionContext): CallRow | undefined {
  return context.calls.find(
    (row) => row.status === 'proposed' && !row.problem && !row.decided && rulingOn(context, row).action === 'ask',
  );
}

/** The next call whose result PostToolUse hooks must see. */
export function nextReturned(context: SessionContext): CallRow | undefined {
  return context.calls.find((row) => row.status === 'returned');
}

/** Whether the record that has opened the consult is being made still: from then on nobody else is asked in it. */
export function isAsking(context: SessionContext): boolean {
  return context.consult?.effect_id.startsWith(`${context.n}-`) === true;
}

/** Whether hooks are being asked about a call. Who was asked is waited for, whatever has become of the table. */
export function isConsulted({ consult }: SessionContext, { call_id }: Pick<CallRow, 'call_id'>): boolean {
  return consult?.call_id === call_id;
}

/** What every payload has. */
export function payloadHead(context: SessionContext, point: HookPoint): JsonObject {
  return {
    event: point,
    session: { id: context.session_id },
    persona: personaOfTurn(context),
    turn: context.turn,
  };
}

/** A call, as payloads hold it. */
export function toolPayload({ tool, args, call_id }: CallRow): JsonObject {
  return { name: tool, args, call_id };
}

/** Whether hooks must let a message in that is accepted now: a prompt's guard guards steers and follow-ups too. */
export function isGuarded(context: SessionContext): boolean {
  return isHooked(context, 'user_prompt_submit');
}

/** Whether hooks have yet to let this one in. Reminders are no prompts, and pass. */
export function awaitsVerdict(context: SessionContext, injection: PendingInjection | PendingFollowup): boolean {
  return !injection.allowed && !('kind' in injection && injection.kind === 'remind') && isGuarded(context);
}

/**
 * What a pass of a seam delivers, by mode, drain policy and the cap. One at a time means one for each request to the
 * model, whatever its mode: only an interrupt that lets no request be made does not wait for one. Never what hooks have yet to let in, nor what stands behind it. */
export function deliverable(context: SessionContext, seam: SeamKind): readonly PendingInjection[] {
  const due = dueAt(context, seam);
  const unseen = due.findIndex((injection) => awaitsVerdict(context, injection));
  return unseen < 0 ? due : due.slice(0, unseen);
}

/** Whether a seam must wait: it would deliver what hooks have yet to let in. A run that is unwinding waits for nobody. */
export function waitsForVerdict(context: SessionContext, seam: SeamKind): boolean {
  return !context.aborting && dueAt(context, seam).some((injection) => awaitsVerdict(context, injection));
}

function dueAt(context: SessionContext, seam: SeamKind): readonly PendingInjection[] {
  if (context.pending.length === 0) return NOTHING;
  // At the cap no queue is drained: the last seams of the last turn pass with nothing delivered.
  if ((seam === 'post_tool_dispatch' || seam === 'iteration_end') && isCapped(context)) return NOTHING;
  const modes: readonly Mode[] = SEAMS[seam].drains;
  const matching = context.pending.filter((injection) => modes.includes(injection.mode));
  if (context.pinned?.drain.steering !== 'one_at_a_time' || seam === 'loop_exit') return matching;
  if (!context.unheard) return matching.slice(0, 1);
  const hurried = matching.find(({ command_id }) => context.preempting.includes(command_id));
  // It overtakes nothing of its own mode: what came first goes in its place.
  return hurried ? matching.filter(({ mode }) => mode === hurried.mode).slice(0, 1) : NOTHING;
}
const NOTHING: readonly PendingInjection[] = [];

const isSteering = (injection: PendingInjection) => injection.mode !== 'audit_only';

/** Whether something waits that a turn would take up, let in or not. */
export function steeringWaits(context: SessionContext): boolean {
  return context.pending.some(isSteering);
}

/** Whether something waits that a turn would take up now. */
export function steeringIsLetIn(context: SessionContext): boolean {
  return context.pending.some((injection) => isSteering(injection) && !awaitsVerdict(context, injection));
}

/** Whether hooks have yet to say of some steering whether a turn takes it up. */
export function steeringAwaitsVerdict(context: SessionContext): boolean {
  return context.pending.some((injection) => isSteering(injection) && awaitsVerdict(context, injection));
}

/** Whether hooks have yet to let in what would be taken before or with the next follow-up. */
export function followupAwaitsVerdict(context: SessionContext): boolean {
  const next = context.pinned?.drain.followups === 'all' ? context.followups : context.followups.slice(0, 1);
  return steeringAwaitsVerdict(context) || next.some((followup) => awaitsVerdict(context, followup));
}

/**
 * The interrupt that wakes a session that is suspended. Each wakes it once: where it sleeps again before a seam could
 * deliver it, as its step is denied each time, it would be woken for ever.
 */
export function waker(context: SessionContext): PendingInjection | undefined {
  return context.pending.find(
    (injection) =>
      injection.mode === 'interrupt_immediate' && !injection.has_woken && !awaitsVerdict(context, injection),
  );
}

/** Whether something waits that would make a run go on, were it not capped. */
export function anythingWaits(context: SessionContext): boolean {
  return (
    context.followups.length > 0 ||
    context.waking?.takes_turn === true ||
    stepsAreLeft(context) ||
    steeringWaits(context)
  );
}

/** Whether the open turn is the last that max_turns allows. */
export function isAtLastTurn(context: SessionContext): boolean {
  const { turns_counted, pinned, relay } = context;
  const whole = pinned?.run_limits?.max_turns ?? Number.POSITIVE_INFINITY;
  return turns_counted - (relay.since?.turns ?? 0) >= (pinned?.max_turns ?? 1) || turns_counted >= whole;
}

/** Whether the open turn is the last: by max_turns, or because no budget is left for the answer of another. */
export function isCapped(context: SessionContext): boolean {
  return isAtLastTurn(context) || uncoveredAnswer(context) !== null;
}

/** Whether the open turn itself gives its run a reason to go on, were it not capped. */
export function turnGoesOn(context: SessionContext): boolean {
  const { batch_open, cut_short, delivered_at_end } = context;
  if (stepHasEnded(context)) return delivered_at_end > 0 || stepsAreLeft(context) || needsRepair(context);
  return batch_open || cut_short || delivered_at_end > 0 || needsRepair(context);
}

/** Whether a run would go on after its open turn, were it not capped. */
export function wouldGoOn(context: SessionContext): boolean {
  return !isAtLastTurn(context) && (turnGoesOn(context) || anythingWaits(context));
}

/** The next follow-up to take, or undefined. */
export function nextFollowup(context: SessionContext): PendingFollowup | undefined {
  return context.followups[0];
}

/** Whether the batch ends the run: every call that ran terminates, without error. Denied and skipped calls did not run. */
export function batchTerminates(context: SessionContext): boolean {
  // An interrupt skipped the rest of the batch: its sender is owed another turn.
  if (context.dispatch_skipped) return false;
  let ran = 0;
  for (const row of context.calls) {
    if (row.ended === 'denied' || row.ended === 'skipped') continue;
    if (row.ended !== 'ok' || !context.tools[row.tool]?.terminates) return false;
    ran++;
  }
  return ran > 0;
}

/** Whether the outside world is still working for this run, tool connections aside. */
export function anythingInFlight(context: SessionContext): boolean {
  return (
    context.model !== null ||
    context.compacting !== null ||
    context.provision !== null ||
    context.consult !== null ||
    context.stop_check !== null ||
    context.calls.some(isInFlight)
  );
}
