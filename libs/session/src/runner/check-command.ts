/** Checks a command against its session before it is recorded. */
import type { Blobs, ToolOutcome } from '@coxswain/ports';
import { type CommandInput, type JsonObject, modeProblem, type ToolDefinition } from '@coxswain/protocol';
import { argumentsProblem } from '@coxswain/protocol/validate-arguments';
import type { SessionActor } from '@coxswain/turn';
import { boundResult, READ_ON_TOOL } from '../effects/bound-result.ts';
import type { Transcript } from '../view/transcript.ts';

/** The parts of a session that its commands are checked against. */
export interface CheckedSession {
  readonly actor: SessionActor;
  readonly transcript: Transcript;
}

/** Checks a command: validates edited arguments and modes, and cuts a result to its bound. */
export async function checkCommand(session: CheckedSession, input: CommandInput, blobs: Blobs): Promise<CommandInput> {
  if (input.problem) return input;
  if (input.verb === 'approve') return withValidArguments(session, input);
  if (input.verb === 'prompt') return withKnownMode(session, input);
  return input.verb === 'call_outcome' || input.verb === 'child_ended'
    ? withBoundedResult(session, input, blobs)
    : input;
}

/** Rejects an unknown mode: a run in it could only fail, and so would later runs. */
function withKnownMode({ transcript }: CheckedSession, input: CommandInput): CommandInput {
  const { mode } = input.body;
  const persona = transcript.frame.persona?.definition;
  const problem = typeof mode === 'string' && persona ? modeProblem(persona, mode) : null;
  return problem === null ? input : { ...input, problem: { code: 'invalid_field', message: problem, field: 'mode' } };
}

/** Validates edited arguments like those of the model. */
function withValidArguments(session: CheckedSession, input: CommandInput): CommandInput {
  const { args } = input.body;
  const tool = args === undefined ? undefined : toolOfCall(session, input);
  const problem = tool ? argumentsProblem(tool, args as JsonObject) : null;
  return problem === null
    ? input
    : { ...input, problem: { code: 'invalid_arguments', message: problem, field: 'args' } };
}

/** Cuts the result in a command to its bound, like the result of a tool. */
async function withBoundedResult(session: CheckedSession, input: CommandInput, blobs: Blobs): Promise<CommandInput> {
  const tool = toolOfCall(session, input);
  const readsOn = session.transcript.frame.tools.some(({ name }) => name === READ_ON_TOOL);
  const { status, result } = input.body as unknown as ToolOutcome;
  const bounded = await boundResult(blobs, { status, result }, { tool, readsOn });
  return { ...input, body: { ...input.body, ...bounded } as unknown as JsonObject };
}

function toolOfCall({ actor, transcript }: CheckedSession, { body }: CommandInput): ToolDefinition | undefined {
  const row = actor.state.context.calls.find((call) =>
    body.call_id === undefined ? call.effect_id === body.effect_id : call.call_id === body.call_id,
  );
  return transcript.frame.tools.find(({ name }) => name === row?.tool);
}
