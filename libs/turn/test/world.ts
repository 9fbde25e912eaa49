/**
 * The possible next inputs of a session. Random runs and generated paths choose from them.
 */
import { type HookPoint, type Input, userText } from '@coxswain/protocol';
import { isEnded, type OpenConsult, type SessionState, sessionTimer } from '../src/mod.ts';
import {
  accepted,
  answered,
  answeredOutput,
  approvalExpires,
  approved,
  asked,
  askedAt,
  call,
  callCancelled,
  cancelled,
  compacted,
  denied,
  Failing,
  fedBack,
  followedUp,
  forked,
  handoff,
  hooksCancelled,
  hooksChanged,
  hooksSaid,
  jobReported,
  type Move,
  modelFailed,
  modelStopped,
  notCompacted,
  noticeGiven,
  notProvisioned,
  notTakenOver,
  overflowed,
  owned,
  predicatesSaid,
  predicatesStopped,
  preempted,
  prompted,
  provisioned,
  reminded,
  replaced,
  resumed,
  returned,
  revoked,
  type Surroundings,
  sessionFailed,
  signalled,
  started,
  steered,
  suspended,
  takenOver,
  timerFires,
  tookOver,
  toolsClosed,
} from './moves.ts';

/** The kind of an input: work, a message, or a failure. */
export type Lane = 'work' | 'word' | 'trouble';

/** A possible input, and its name in a path. */
export interface Possibility {
  readonly lane: Lane;
  readonly name: string;
  readonly input: Input;
}

type Named = readonly [lane: Lane, name: string, move: Move];

/**
 * The possible next inputs.
 * @param id gives each command its id; the same id twice makes a repetition.
 */
export function possibilities(state: SessionState, around: Surroundings, id: () => string): Possibility[] {
  const moves: Named[] = [
    ...provisionMoves(state, around),
    ...modelMoves(state, around),
    ...compactionMoves(state),
    ...callMoves(state, around),
    ...waitMoves(state, around, id),
    ...consultMoves(state),
    ...commandMoves(state, id),
    ['word', 'feedback', fedBack()],
    ['word', 'feedback overflows', fedBack(1, 3)],
    ['word', 'hooks change', hooksChanged([])],
    ['word', 'gate hooks go', hooksChanged(state.context.hooks.filter(({ point }) => point !== 'gate_tool_calls'))],
    ...state.context.jobs
      .slice(0, 1)
      .map(({ job_id }): Named => ['word', 'job reported', jobReported(job_id, 'succeeded', id())]),
    ...(state.context.consult && !state.context.consult.reports
      ? ([['word', 'job reported early', jobReported('j', 'succeeded', id())]] as const)
      : []),
    ['trouble', 'owned', owned(state.context.epoch + 1)],
    ['trouble', 'session failed', sessionFailed],
    ...(state.context.run === 0 ? ([['word', 'fork', forked(id())]] as const) : []),
    ['trouble', 'taken over', takenOver()],
    ['trouble', 'taken over with another model', takenOver({ settings: { model: 'scripted/other.yaml' } })],
    ['trouble', 'taken over half copied', takenOver({ error: { code: 'fork_origin_gone', message: 'gone' } })],
  ];
  if (state.context.stop_check) {
    moves.push(['work', 'predicates do not hold', predicatesSaid(false)]);
    moves.push(['work', 'predicates hold', predicatesSaid(true)]);
    moves.push(['trouble', 'predicates fail', predicatesSaid('it threw')]);
  }
  if (state.context.closing) moves.push(['work', 'tools closed', toolsClosed]);
  if (sessionTimer(state)) moves.push(['work', 'timer fires', timerFires]);
  return moves.map(([lane, name, move]) => ({
    lane,
    name,
    input: typeof move === 'function' ? move(state) : (move as Input),
  }));
}

/** Ends one open effect without further consequences: how a cancelled session comes to its end. */
export function settlement(state: SessionState): Input | null {
  const { context } = state;
  const made = (move: Move): Input => (typeof move === 'function' ? move(state) : (move as Input));
  if (context.provision) return made(notProvisioned('cancelled'));
  if (context.model) return made(modelStopped());
  if (context.compacting) return made(notCompacted('cancelled'));
  const running = context.calls.find((row) => row.status === 'running');
  if (running?.tool === 'handoff') return made(notTakenOver(running.call_id, 'cancelled'));
  if (running) return made(returned(running.call_id, 'cancelled'));
  if (context.consult) return made(hooksCancelled);
  if (context.stop_check) return made(predicatesStopped);
  if (context.closing) return made(toolsClosed);
  return null;
}

/**
 * Ends one open effect in a constant world: hooks always refuse, calls fail, models answer. A session that only
 * continues by itself comes to rest in it.
 */
export function sameAgain(state: SessionState, around: Surroundings): Input | null {
  const { consult, model, compacting, provision } = state.context;
  const made = (move: Move): Input => (typeof move === 'function' ? move(state) : (move as Input));
  if (consult) {
    const no = VERDICTS[consult.point]?.(consult).find((said) => /deny|block/.test(JSON.stringify(said)));
    return made(hooksSaid(...consult.hooks.map(() => no)));
  }
  if (provision) return made(provisioned(ofPersona(around, state.context.pinned?.persona)));
  if (model) return made(around.outputRepairs === undefined ? answered() : answeredOutput(MISFIT));
  if (compacting) return made(compacted());
  return settlement(state);
}

/** Two personas take turns: from the settings of one, those of the other. */
function ofPersona(around: Surroundings, persona: string | undefined): Surroundings {
  return persona === 'tester' ? { ...around, persona, handoffs: ['coder'] } : { ...around, persona: 'coder' };
}

function provisionMoves(state: SessionState, around: Surroundings): Named[] {
  const { provision, pinned } = state.context;
  if (!provision) return [];
  return [
    // The persona changes only by a hand-off.
    ['work', 'provisioned', provisioned(ofPersona(around, pinned?.persona))],
    ['trouble', 'not provisioned', notProvisioned()],
    ['trouble', 'provisioning broken off', notProvisioned('cancelled')],
  ];
}

const BATCHES = [
  [call('a', 'read')],
  [call('a', 'ask')],
  [call('a', 'ask'), call('b', 'read'), call('c', 'ask')],
  [call('a', 'forbidden'), call('b', 'done')],
  [call('a', 'done'), call('b', 'done')],
  [call('a', 'seq'), call('b', 'ask'), call('c', 'read')],
  [call('a', 'long'), call('b', 'read')],
  [call('a', 'read', { args: null, problem: { code: 'unknown_tool', message: 'no such tool.' } }), call('b', 'ask')],
  [call('a', 'read', { args: null, problem: { code: 'unknown_tool', message: 'no such tool.' } })],
];

/** For a persona with hand-offs. */
function handoffBatches({ pinned }: SessionState['context']) {
  const to = pinned?.handoffs?.[0];
  if (to === undefined) return [];
  return [
    [handoff('a', to)],
    [handoff('a', to), call('b', 'read')],
    [handoff('a', to), call('b', 'ask'), handoff('c', to)],
    [handoff('a', 'nobody'), call('b', 'seq'), handoff('c', to)],
  ];
}

/** The validation of an answer that does not fit the output schema. */
const MISFIT = { problems: ['must be object'] };

function modelMoves(state: SessionState, { outputRepairs, parallelCalls = 0 }: Surroundings): Named[] {
  if (!state.context.model) return [];
  const checked: Named[] = [
    ['work', 'answers with a misfit', answeredOutput(MISFIT)],
    ['work', 'answers with an output', answeredOutput({ value: {} })],
  ];
  // With the announcements of so many calls, a seam waits.
  const many = Array.from({ length: parallelCalls + 1 }, (_, i) => call(`c${i}`, 'read'));
  return [
    ['work', 'answers', answered()],
    ...(parallelCalls > 32 ? ([['work', 'asks for many', asked(...many)]] as const) : []),
    ...(outputRepairs === undefined ? [] : checked),
    ...[...BATCHES, ...handoffBatches(state.context)].map(
      (batch): Named => [
        'work',
        `asks ${batch.map((part) => (part.problem ? 'unknown' : part.tool)).join(' ')}`,
        asked(...batch),
      ],
    ),
    // An answer after which the next prompt exceeds a small window.
    ['work', 'answers at length', askedAt(90, call('a', 'read'))],
    ['trouble', 'prompt overflows', overflowed()],
    ['trouble', 'model fails', modelFailed()],
    ['trouble', 'model fails half-way', modelFailed('half', call('a', 'read'))],
    ['trouble', 'model stops', modelStopped('half', call('a', 'read'))],
  ];
}

function compactionMoves(state: SessionState): Named[] {
  if (!state.context.compacting) return [];
  return [
    ['work', 'summary comes', compacted()],
    ['trouble', 'summary fails', notCompacted()],
    ['trouble', 'summary is broken off', notCompacted('cancelled')],
  ];
}

function handoffMoves({ context }: SessionState, around: Surroundings, id: string): Named[] {
  const to = context.pinned?.persona === 'tester' ? 'coder' : 'tester';
  return [
    ['work', `${id} brings another persona`, tookOver(id, ofPersona(around, to))],
    ['work', `${id} finds no persona`, notTakenOver(id)],
    ['trouble', `${id} is broken off`, notTakenOver(id, 'cancelled')],
  ];
}

function callMoves(state: SessionState, around: Surroundings): Named[] {
  return state.context.calls.flatMap((row): Named[] => {
    if (row.status !== 'running') return [];
    const id = row.call_id;
    if (row.tool === 'handoff') return handoffMoves(state, around, id);
    return [
      ['work', `${id} returns`, returned(id)],
      ['work', `${id} parks`, returned(id, 'ok', { park: {} })],
      ['work', `${id} edits`, returned(id, 'ok', { edited: ['a.ts', 'b.ts'] })],
      ['work', `${id} fails`, returned(id, 'error')],
      ['work', `${id} is stopped`, returned(id, 'cancelled')],

      ...(row.tool === 'long' && row.accepted === undefined
        ? ([['work', `${id} is taken up`, accepted(id)]] as const)
        : []),
      ['work', `${id} does not stop`, returned(id, 'cancelled', { timed_out: true })],
      ['work', `${id} is interrupted`, returned(id, 'interrupted')],
    ];
  });
}

/** Inputs for pending approvals, in worlds with expiry or final decisions. */
function waitMoves({ context }: SessionState, around: Surroundings, id: () => string): Named[] {
  const parked = context.calls.filter(({ status }) => status === 'parked');
  const known = context.remembered.filter(({ revoked }) => !revoked);
  return [
    ...parked.flatMap(({ call_id, expiry, notice }): Named[] => [
      ...(expiry ? ([['work', `${call_id} expires`, approvalExpires(call_id)]] as const) : []),
      ...(notice ? ([['work', `notice of ${call_id}`, noticeGiven(call_id)]] as const) : []),
      ...(around.remembered
        ? ([['word', `allow ${call_id} for good`, approved(call_id, { remember: 'session' }, id())]] as const)
        : []),
    ]),
    ...known.slice(0, 1).map((rule): Named => ['word', 'revoke rule', revoked(rule.id, id())]),
  ];
}

/** Return values of handlers other than no objection; at other points none. */
const MANY_REMINDERS = Array.from({ length: 32 }, (_, i) => ({ reminder: { body: `mind ${i}` } }));
const TOLD: readonly unknown[] = [{ body: 'mind this', dedupe_key: 'k' }, { job: { status: 'queued', job_id: 'j' } }];
const VERDICTS: { readonly [P in HookPoint]?: (consult: OpenConsult) => readonly unknown[] } = {
  OnHandoffEmitted: () => [{ deny: 'stay' }],
  PreStep: () => [{ args: { prompt: 'Do less.' } }, { args: { promt: '' } }, { deny: 'not yet' }],
  PostStep: () => [{ output: 'enough' }, { deny: 'too little' }],
  loop_checkpoint: () => TOLD,
  permission_replied: () => TOLD,
  OnBudgetThreshold: () => TOLD,
  OnApprovalRequested: () => [...TOLD, { deny: 'no' }],
  session_idle: () => [{ body: 'mind this' }, { body: 'for the record', mode: 'audit_only' }],
  pre_compact: () => [{ block: true, reason: 'not now' }],
  transform_context: () => [{ messages: [userText('only this')] }],
  pre_suspend: () => [{ block: true, reason: 'not now' }],
  user_prompt_submit: () => [{ block: true, reason: 'no' }],
  PreToolUse: () => [{ deny: 'no' }, { args: { rewritten: true } }],
  gate_tool_calls: ({ payload }) => [
    ((payload.calls as unknown[] | undefined) ?? []).map(() => ({ allow: true })),
    [{ allow: true }],
  ],
  permission_asked: () => [{ decision: 'allow' }, { decision: 'deny' }, { decision: 'ask' }],
  PostToolUse: () => [{ result: 'rewritten' }, { is_error: true }, { is_error: false }],
};

function consultMoves(state: SessionState): Named[] {
  const { consult } = state.context;
  if (!consult) return [];
  const verdicts = VERDICTS[consult.point]?.(consult) ?? [];
  const all = (said: unknown) => hooksSaid(...consult.hooks.map(() => said));
  return [
    ['work', 'hooks have no objection', all(undefined)],
    ...verdicts.map((said): Named => ['work', `hooks say ${JSON.stringify(said)}`, all(said)]),
    [
      'work',
      'each hook begins a job',
      hooksSaid(...consult.hooks.map((job_id) => ({ job: { status: 'queued', job_id } }))),
    ],
    ['work', 'each hook reminds of much', all(MANY_REMINDERS)],
    ['trouble', 'hooks fail', all(new Failing())],
    ['trouble', 'hooks broken off', hooksCancelled],
  ];
}

function commandMoves(state: SessionState, id: () => string): Named[] {
  const anyCall = state.context.calls.map((row) => row.call_id);
  return [
    ['word', 'start', started({}, id())],
    // An ended session continues with its next prompt.
    [isEnded(state) ? 'work' : 'word', 'prompt', prompted(id())],
    ...['interrupt_immediate', 'finish_step', 'audit_only'].flatMap((mode): Named[] => [
      ['word', `steer ${mode}`, steered(id(), mode)],
      ['word', `remind ${mode}`, reminded(id(), mode)],
    ]),
    ['word', 'preempt', preempted(id())],
    ['word', 'preempt with a reminder', preempted(id(), 'remind')],
    ['word', 'followup', followedUp(id())],
    ['word', 'keyed steer', steered(id(), 'finish_step', { dedupe_key: 'k' })],
    ['word', 'keyed remind', reminded(id(), 'finish_step', { dedupe_key: 'k', ttl_turns: 1 })],
    ['word', 'keyed followup', followedUp(id(), { dedupe_key: 'k' })],
    ...[...state.context.pending, ...state.context.followups, ...state.context.reminders]
      .slice(0, 2)
      .flatMap(({ command_id }, index): Named[] => [
        ['word', `revoke ${index}`, revoked(command_id, id())],
        ['word', `replace ${index}`, replaced(command_id, 'rather this', id())],
      ]),
    ['word', 'revoke nothing', revoked('nothing', id())],
    ...anyCall.flatMap((callId): Named[] => [
      ['work', `allow ${callId}`, approved(callId, {}, id())],
      ['word', `allow ${callId} edited`, approved(callId, { args: { edited: true } }, id())],
      ['word', `deny ${callId}`, denied(callId, {}, id())],
      ['word', `cancel ${callId}`, callCancelled(callId, {}, id())],
      ['word', `cancel ${callId} quietly`, callCancelled(callId, { inject_reminder: false }, id())],
    ]),
    ['word', 'cancel no call', callCancelled('nobody', {}, id())],
    ['word', 'suspend', suspended(id())],
    ['word', 'suspend until', suspended(id(), { for_ms: 60_000 })],
    ['word', 'suspend or fail', suspended(id(), { for_ms: 60_000, on_timeout: 'fail' })],
    ['word', 'suspend for a signal', suspended(id(), { signal: 'go' })],
    ['word', 'signal', signalled('go', id())],
    ['word', 'signal for nobody', signalled('other', id())],
    ['word', 'resume', resumed(id())],
    ['trouble', 'cancel', cancelled(id())],
  ];
}
