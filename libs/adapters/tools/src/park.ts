import type { ToolSource } from '@coxswain/ports';
import { BOUNDS, DEFAULT_TRAITS, OnTimeout, readStrictly, SuspensionRequest } from '@coxswain/protocol';
import { type FunctionTool, functionToolset } from './function-toolset.ts';
import { inputSchema, type Parameters, readArguments } from './parameters.ts';
import { succeeded } from './tool-outcome.ts';
import { ToolProblem } from './tool-problem.ts';

const parameters = {
  reason: { type: 'string', description: 'The reason, for people who inspect the session.', optional: true },
  until: {
    type: 'string',
    description: 'Wake at this time: ISO 8601 with Z or an offset, for example 2030-01-31T09:00:00Z.',
    optional: true,
  },
  for_ms: {
    type: 'integer',
    description: 'Wake after this number of milliseconds. Use it instead of until.',
    minimum: 1,
    maximum: BOUNDS.longWaitMaxMs,
    optional: true,
  },
  signal: {
    type: 'string',
    description: 'Wake when a signal of this name arrives. A time given with it is the latest time to wake.',
    minLength: 1,
    maxLength: 64,
    optional: true,
  },
  on_timeout: {
    type: 'string',
    description:
      'The action at the given time: resume_with_summary (the default) continues with a summary of the wait, ' +
      'resume_with_input continues with input as a message, fail ends the run.',
    enum: OnTimeout.options,
    optional: true,
  },
  input: { type: 'string', description: 'The message for resume_with_input.', minLength: 1, optional: true },
} as const satisfies Parameters;

/**
 * The tool `park`: the agent suspends its own session until a time, a signal or a `resume`. The tool itself does
 * nothing: its outcome carries the request to the session.
 */
export const parkTool: FunctionTool = {
  definition: {
    name: 'park',
    description:
      'Parks this session at the end of the current turn. A parked session costs nothing: use it instead of waiting ' +
      'or polling. The session wakes at a time, at a signal, or when a person resumes or interrupts it. A reminder ' +
      'then states how long it slept and why it woke. A message that arrives before the end of the turn keeps it awake.',
    input_schema: inputSchema(parameters),
    source: 'built_in',
    traits: { ...DEFAULT_TRAITS, idempotent: true },
  },
  async run(args) {
    const parsed = readStrictly(SuspensionRequest, readArguments(parameters, args));
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

/** Creates only the tool `park`, for programs whose sessions have no other built-in tools. */
export function createParkTool(): ToolSource {
  return { open: async () => functionToolset([parkTool]) };
}

function wokenBy({ until, for_ms, signal }: SuspensionRequest): string {
  const time = until === undefined ? (for_ms === undefined ? null : `for ${for_ms} ms`) : `until ${until}`;
  const awaited = signal === undefined ? null : `until the signal "${signal}" arrives`;
  return [time, awaited].filter((part) => part !== null).join(' or ') || 'until a person resumes it';
}
