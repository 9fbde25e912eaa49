/**
 * Tools for work with other sessions. The session executes their calls itself, without a source of tools.
 */
import * as z from 'zod';
import { MessageMode } from '../personas/crews.ts';
import { BOUNDS } from '../wire/bounds.ts';
import { DEFAULT_TRAITS, type ToolDefinition } from './calls.ts';

/** `source` of tools that the session executes itself. */
export const SESSION_SOURCE = 'session';

/** Whether a failed child session is replaced by a new one. */
export const Restart = z.enum(['never', 'on_failure']);
export type Restart = z.infer<typeof Restart>;

/** Arguments of a call of `delegate`, after validation. */
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

/** The tool that hands the session over to another persona. */
export const HANDOFF = 'handoff';

/** Arguments of a call of `handoff`. */
export interface HandoffArgs {
  readonly to: string;
  readonly brief: string;
}

const text = (description: string, maxLength: number) => ({ type: 'string', description, minLength: 1, maxLength });
const whole = (description: string, maximum: number) => ({ type: 'integer', description, minimum: 1, maximum });

/** `delegate`: a child session does a piece of work. Its answer is the result of the call. */
export const DELEGATE_TOOL: ToolDefinition = {
  name: 'delegate',
  description:
    'Delegates work to a new session with the persona that you name, and returns its answer as the result. The new ' +
    'session sees only the prompt, not this conversation: include all that it needs. Several calls in one response ' +
    'run in parallel.',
  input_schema: {
    type: 'object',
    properties: {
      persona: text('The persona that does the work. Your own is allowed.', 64),
      prompt: text('The task: what to do, with which inputs, and what to answer.', 128 * 1024),
      mode: text('A mode of that persona.', 64),
      restart: {
        type: 'string',
        enum: Restart.options,
        description: 'When a failed session is restarted. Default: never.',
      },
      max_restarts: whole('Restarts with on_failure. Default: 1.', BOUNDS.restartsMax),
      limits: {
        type: 'object',
        description: 'Tighter limits than its share of your budget.',
        properties: {
          max_turns: whole('Turns.', 1_000_000),
          tokens: whole('Tokens in and out, with all sessions that it starts.', 1e12),
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

/** `handoff`: the session continues with another persona. */
export const HANDOFF_TOOL: ToolDefinition = {
  name: HANDOFF,
  description:
    'Hands this conversation off to another persona. From the next turn it continues with its own instructions and ' +
    'tools, and it sees the whole conversation. Other calls of the same response finish first. Only the first hand-off ' +
    'of a response counts.',
  input_schema: {
    type: 'object',
    properties: {
      to: text('The name of the persona that continues.', 64),
      brief: text('Its first message: the goal, the work done, and the work left.', BOUNDS.briefMaxChars),
    },
    required: ['to', 'brief'],
    additionalProperties: false,
  },
  source: SESSION_SOURCE,
  traits: { ...DEFAULT_TRAITS, idempotent: true },
};

/** `send_message`: sends a message to another session. */
export const SEND_MESSAGE_TOOL: ToolDefinition = {
  name: 'send_message',
  description:
    'Sends a message to another session, for example to one that sent you a message or waits for jobs. The result ' +
    'confirms only that the message is stored. The receiver sees the id of your session. An answer, if any, arrives ' +
    'as a message to you.',
  input_schema: {
    type: 'object',
    properties: {
      to: { type: 'string', description: 'The id of the session.', pattern: '^[A-Za-z0-9_-]{1,64}$' },
      body: text('The text of the message.', 128 * 1024),
      mode: {
        type: 'string',
        enum: MessageMode.options,
        description:
          'steer (default) arrives between two steps, interrupt stops its work, followup waits for the end of its work, ' +
          'prompt also starts a new run if it has ended.',
      },
    },
    required: ['to', 'body'],
    additionalProperties: false,
  },
  source: SESSION_SOURCE,
  traits: { ...DEFAULT_TRAITS, idempotent: true },
};
