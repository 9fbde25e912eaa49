/** The tool `park`: the agent suspends its own session until a time, until a signal, or until somebody resumes it. */
import type { ToolSource } from '@coxswain/ports';
import { BOUNDS, DEFAULT_TRAITS, OnTimeout, ParkRequest, readStrictly } from '@coxswain/protocol';
import { type FunctionTool, functionToolset } from './function-toolset.ts';
import { inputSchema, type Parameters, readArguments } from './parameters.ts';
import { succeeded } from './tool-outcome.ts';
import { ToolProblem } from './tool-problem.ts';

const parameters = {
  reason: { type: 'string', description: 'Why it is parked, for people who look at it.', optional: true },
  until: {
    type: 'string',
    description: 'Wake at this time: ISO 8601 with Z or an offset, for example 2030-01-31T09:00:00Z.',
    optional: true,
  },
  for_ms: {
    type: 'integer',
    description: 'Wake after so many milliseconds. Instead of until.',
    minimum: 1,
    maximum: BOUNDS.parkMaxMs,
    optional: true,
  },
  signal: {
    type: 'string',
    description: 'Wake when a signal of this name comes. May be given beside a time, which is then the latest.',
    minLength: 1,
    maxLength: 64,
    optional: true,
  },
  on_timeout: {
    type: 'string',
    description:
      'What happens when the time has come: resume_with_summary goes on and says what was waited for (the default), ' +
      'resume_with_input goes on with input as a message, fail ends the run.',
    enum: OnTimeout.options,
    optional: true,
  },
  input: { type: 'string', description: 'The message for resume_with_input.', minLength: 1, optional: true },
} as const satisfies Parameters;

/** See the file's header. It does nothing itself: its outcome carries the request into the session. */
export const parkTool: FunctionTool = {
  definition: {
    name: 'park',
    description:
      'Parks this session at the end of the present turn and costs nothing while it sleeps: use it instead of waiting ' +
      'or asking again and again. It wakes at a time, at a signal, or when somebody resumes or interrupts it; you are ' +
      'then told how long it slept and why it woke. A message that arrives before the turn has ended keeps it awake.',
    input_schema: inputSchema(parameters),
    source: 'built_in',
    traits: { ...DEFAULT_TRAITS, idempotent: true },
  },
  async run(args) {
    const parsed = readStrictly(ParkRequest, readArguments(parameters, args));
    if (!parsed.ok) {
      const [{ path, words }] = parsed.problems;
      const field = path.join('.');
      throw new ToolProblem('invalid_call_arguments', `the argument ${field}: ${words}`, { field });
    }
    return {
      ...succeeded(`The session will be parked at the end of this turn, ${wokenBy(parsed.data)}.`),
      park: parsed.data,
    };
  },
};

/** The tool `park` alone, for programs that give their sessions no other built-in tools. */
export function createParkTool(): ToolSource {
  return { open: async () => functionToolset([parkTool]) };
}

function wokenBy({ until, for_ms, signal }: ParkRequest): string {
  const time = until === undefined ? (for_ms === undefined ? null : `for ${for_ms} ms`) : `until ${until}`;
  const awaited = signal === undefined ? null : `until the signal "${signal}" comes`;
  return [time, awaited].filter((part) => part !== null).join(' or ') || 'until somebody resumes it';
}
