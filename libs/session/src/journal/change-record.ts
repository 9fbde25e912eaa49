/**
 * Changes one record's input for a fork. No other input changes, except for the parts that `buildCopyInput` removes or sets. Of
 * the changes, `verdicts` and `result` are rejected with the reason if they do not match the kind of record. A `prompt`
 * that does not match leaves the record as it is: `splitPrompt` (plan-fork.ts) decides about it.
 */
import type { Blobs } from '@coxswain/ports';
import {
  type CommandInput,
  type CommandProblem,
  type ConsultOutcome,
  EVERY_HOOK,
  type ForkChanges,
  type HookAnswer,
  INJECTION_VERBS,
  type Input,
  type JournalRecord,
  type Json,
  type JsonObject,
  regexBudget,
  rejectionIn,
} from '@coxswain/protocol';
import { argumentsProblem } from '@coxswain/protocol/validate-arguments';
import { failsClosed, type SessionState } from '@coxswain/turn';
import { boundResult, READ_ON_TOOL } from '../effects/bound-result.ts';
import { answerTo, doesNotApply, endsChain, payloadAfter } from '../effects/consult-hooks.ts';
import type { Transcript } from '../view/transcript.ts';
import { describeRecord } from './describe-record.ts';

/** The state of the session before the record. */
export interface BeforeRecord {
  readonly state: SessionState;
  readonly transcript: Transcript;
  readonly blobs: Pick<Blobs, 'put'>;
}

/** The changed input, or the reason for the rejection. */
export type ChangedInput = { readonly input: Input } | { readonly problem: CommandProblem };

const PROMPTED: ReadonlySet<string> = new Set(['start', 'start_child', 'prompt', ...INJECTION_VERBS]);

/**
 * Whether the record is of an accepted start, prompt or injection. In such a record, the change `prompt` of a fork
 * replaces the text. For any other record it is a new prompt after the record (`splitPrompt`, plan-fork.ts).
 */
export function isPromptRecord({ input, events }: Pick<JournalRecord, 'input' | 'events'>): boolean {
  return input.type === 'command' && PROMPTED.has(input.verb) && !rejectionIn(events, input.command_id);
}

/**
 * Changes the input of a record. Ignores members of `changes` that concern later records.
 * @param before the state before the record. Its `blobs` store a changed result that is too long for its tool.
 */
export async function changeRecord(
  record: JournalRecord,
  changes: ForkChanges,
  before: BeforeRecord,
): Promise<ChangedInput> {
  const { input } = record;
  if (changes.verdicts) return changeVerdicts(record, changes.verdicts, before);
  if (changes.result) return changeResult(record, changes.result, before);
  if (changes.prompt === undefined || !isPromptRecord(record)) return { input };
  const { verb, body } = input as CommandInput;
  const { prompt: _, messages: __, ...rest } = body;
  const changed =
    verb === 'start' || verb === 'start_child'
      ? { ...rest, prompt: changes.prompt }
      : { ...rest, body: changes.prompt };
  return { input: { ...(input as CommandInput), body: changed } };
}

/** The rejection of a change that does not match the kind of the record. */
export function misfit(record: JournalRecord, field: string, message: string): { readonly problem: CommandProblem } {
  const path = `fork.changes.${field}`;
  return {
    problem: {
      code: 'fork_change_misfit',
      message: `${path}: record ${record.n} is ${describeRecord(record)}: ${message}`,
      field: path,
    },
  };
}

// ---- verdicts ----

function changeVerdicts(
  record: JournalRecord,
  verdicts: NonNullable<ForkChanges['verdicts']>,
  { state, transcript }: BeforeRecord,
): ChangedInput {
  const { input } = record;
  const { consult, calls, hooks: table } = state.context;
  if (input.type !== 'consult_outcome' || !consult)
    return misfit(record, 'verdicts', 'this record contains no hook returns');
  if (input.status !== 'answered') return misfit(record, 'verdicts', 'the hooks were interrupted');
  const { point, hooks, call_id } = consult;
  const stranger = Object.keys(verdicts).find((hook) => hook !== EVERY_HOOK && !hooks.includes(hook));
  if (stranger !== undefined) return misfit(record, `verdicts.${stranger}`, 'this hook was not asked at this record');
  const view = point === 'transform_context' ? transcript.viewAsked() : undefined;
  const answers: HookAnswer[] = [];
  let { payload } = consult;
  const budget = regexBudget();
  let hasEnded = false;
  for (const hook of hooks) {
    const registration = table.find((candidate) => candidate.id === hook && candidate.point === point);
    const recorded = input.answers.find((answer) => answer.hook === hook) ?? { hook, not_run: true };
    const key = [hook, EVERY_HOOK].find((candidate) => Object.hasOwn(verdicts, candidate));
    if (key !== undefined && !registration)
      return misfit(record, `verdicts.${hook}`, `${hook} was no longer registered when its turn came`);
    let answer: HookAnswer = hasEnded ? { hook, not_run: true } : recorded;
    if (key !== undefined && registration && !hasEnded) {
      const said = verdicts[key] as Json;
      answer = answerTo(registration, point, said, Buffer.byteLength(JSON.stringify(said), 'utf8'), payload, view);
      if (answer.failure) return misfit(record, `verdicts.${hook}`, answer.failure.message);
    } else if (
      answer.not_run &&
      !hasEnded &&
      !(registration && doesNotApply(registration, [consult.payload, payload], budget))
    ) {
      const message = `${hook} was not asked because an earlier hook ended the chain; give its return, too`;
      return misfit(record, `verdicts.${hook}`, message);
    }
    answers.push(answer);
    payload = payloadAfter(payload, answer.verdict);
    hasEnded ||= endsChain(answer.verdict) || failsClosed({ consult }, answer);
  }
  const { args_problem: _, needs_approval: __, ...rest } = input;
  const tool = calls.find((row) => row.call_id === call_id)?.tool;
  return { input: { ...rest, answers, ...argsProblem(answers, tool, transcript) } };
}

function argsProblem(
  answers: readonly HookAnswer[],
  name: string | undefined,
  transcript: Transcript,
): Pick<ConsultOutcome, 'args_problem' | 'needs_approval'> {
  const rewrite = answers.findLast(({ verdict }) => verdict?.kind === 'rewrite_args')?.verdict;
  const tool = transcript.frame.tools.find((candidate) => candidate.name === name);
  if (rewrite?.kind !== 'rewrite_args' || !tool) return {};
  const problem = argumentsProblem(tool, rewrite.args);
  if (problem !== null) return { args_problem: { code: 'invalid_call_arguments', message: problem } };
  // A fork does not ask the tool whether the changed arguments need an approval. If the tool may require an approval,
  // the call needs one.
  return tool.needs_approval ? { needs_approval: true } : {};
}

// ---- results ----

async function changeResult(
  record: JournalRecord,
  { text, is_error }: NonNullable<ForkChanges['result']>,
  { state, transcript, blobs }: BeforeRecord,
): Promise<ChangedInput> {
  const { input } = record;
  const callId = calledIn(record);
  const row = state.context.calls.find((candidate) => candidate.call_id === callId);
  if (row?.status !== 'running') return misfit(record, 'result', 'this record contains no result of a tool call');
  const { tools } = transcript.frame;
  const said = { content: [{ type: 'text' as const, text }], is_error };
  const { status, result } = await boundResult(
    blobs as Blobs,
    { status: is_error ? 'error' : 'ok', result: said },
    {
      tool: tools.find(({ name }) => name === row.tool),
      hasReadOnTool: tools.some(({ name }) => name === READ_ON_TOOL),
    },
  );
  if (input.type === 'command') {
    const body = { ...input.body, status, result } as unknown as JsonObject;
    return { input: { ...input, body } };
  }
  if (input.type !== 'call_outcome') return { input };
  const { effect_id, call_id, duration_ms } = input;
  const ended = status === 'ok' ? ('ok' as const) : ('error' as const);
  return { input: { type: 'call_outcome', effect_id, call_id, status: ended, result, duration_ms } };
}

function calledIn({ input, events }: JournalRecord): string | undefined {
  if (input.type === 'call_outcome') return input.call_id;
  return input.type === 'command' && input.verb === 'call_outcome' && !rejectionIn(events, input.command_id)
    ? String(input.body.call_id)
    : undefined;
}
