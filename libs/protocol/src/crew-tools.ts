/** The tools by which a session works with others. It carries their calls out itself: no source of tools runs them. */
import * as z from 'zod';
import { BOUNDS } from './bounds.ts';
import { DEFAULT_TRAITS, type ToolDefinition } from './calls.ts';
import { MessageMode } from './crews.ts';

/** `source` of a tool whose calls the session carries out itself. */
export const SESSION_SOURCE = 'session';

/** Whether a child session that ended in an error restarts. */
export const Restart = z.enum(['never', 'on_failure']);
/** See {@link Restart}. */
export type Restart = z.infer<typeof Restart>;

/** Arguments of a call of `delegate`, once they have been held against its schema. */
export interface DelegateArgs {
  readonly persona: string;
  readonly prompt: string;
  readonly mode?: string;
  readonly restart?: Restart;
  readonly max_restarts?: number;
  readonly limits?: {
    readonly max_turns?: number;
    readonly tokens?: number;
    readonly usd?: number;
    readonly wall_time_ms?: number;
  };
}

/** Arguments of a call of `send_message`. */
export interface SendMessageArgs {
  readonly to: string;
  readonly body: string;
  readonly mode?: MessageMode;
}

/** The tool by which a session goes to another persona. */
export const HANDOFF = 'handoff';

/** Arguments of a call of `handoff`. */
export interface HandoffArgs {
  readonly to: string;
  readonly brief: string;
}

const text = (description: string, maxLength: number) => ({ type: 'string', description, minLength: 1, maxLength });
const whole = (description: string, maximum: number) => ({ type: 'integer', description, minimum: 1, maximum });

/** `delegate`: a child session does a piece of work, and its answer is the call's result. */
export const DELEGATE_TOOL: ToolDefinition = {
  name: 'delegate',
  description:
    'Gives a piece of work to a session of its own, of a persona that you name, and waits for its answer, which is the ' +
    'result. It knows nothing of this conversation but the prompt: say there all that it needs. Several calls in one ' +
    'answer work at the same time.',
  input_schema: {
    type: 'object',
    properties: {
      persona: text('The name of the persona that is to do it; your own is allowed.', 64),
      prompt: text('The work: what is to be done, with what, and what to answer.', 128 * 1024),
      mode: text('A mode of that persona.', 64),
      restart: {
        type: 'string',
        enum: Restart.options,
        description: 'Whether it is begun again if it fails. never if not given.',
      },
      max_restarts: whole('How often, with on_failure; 1 if not given.', BOUNDS.restartsMax),
      limits: {
        type: 'object',
        description: 'Tighter limits than its share of yours.',
        properties: {
          max_turns: whole('Turns.', 1_000_000),
          tokens: whole('Tokens in and out, of it and all that it starts.', 1e12),
          usd: { type: 'number', description: 'USD.', minimum: 0.000_001, maximum: 1_000_000 },
          wall_time_ms: whole('Milliseconds from its start to its end.', 31_536_000_000),
        },
        additionalProperties: false,
      },
    },
    required: ['persona', 'prompt'],
    additionalProperties: false,
  },
  source: SESSION_SOURCE,
  traits: { ...DEFAULT_TRAITS, idempotent: true, long_running: true },
};

/** `handoff`: the session goes to another persona. */
export const HANDOFF_TOOL: ToolDefinition = {
  name: HANDOFF,
  description:
    'Hands this conversation over to another persona, which goes on in your place from the next turn, with its own ' +
    'instructions and tools; it sees all that was said. Other calls of the same answer are finished first. Only one ' +
    'hand-off of an answer counts.',
  input_schema: {
    type: 'object',
    properties: {
      to: text('The name of the persona that is to go on.', 64),
      brief: text('What it is told first: what is wanted, what was done, what is left to do.', BOUNDS.briefMaxChars),
    },
    required: ['to', 'brief'],
    additionalProperties: false,
  },
  source: SESSION_SOURCE,
  traits: { ...DEFAULT_TRAITS, idempotent: true },
};

/** `send_message`: something is said to another session. */
export const SEND_MESSAGE_TOOL: ToolDefinition = {
  name: 'send_message',
  description:
    'Says something to another session, by its id: for instance to one that has sent you a message, or to one that waits ' +
    'for jobs. The result says only that it was stored for it. It is told which session the message is from; an answer, ' +
    'if one comes, comes as a message to you.',
  input_schema: {
    type: 'object',
    properties: {
      to: { type: 'string', description: 'The id of the session.', pattern: '^[A-Za-z0-9_-]{1,64}$' },
      body: text('What is said.', 128 * 1024),
      mode: {
        type: 'string',
        enum: MessageMode.options,
        description:
          'steer (the default) reaches it between two steps of what it does, interrupt stops what it does, followup waits ' +
          'until it has done that, prompt also begins its next run if it has ended.',
      },
    },
    required: ['to', 'body'],
    additionalProperties: false,
  },
  source: SESSION_SOURCE,
  traits: { ...DEFAULT_TRAITS, idempotent: true },
};
