/**
 * One question to one handler, and the reply. They are the same for a handler in the host's process and for one behind the
 * bus.
 */

import type { Message } from '../journal/messages.ts';
import type { SessionRef } from '../wire/ids.ts';
import type { JsonObject } from '../wire/json.ts';
import type { HookRegistration } from './hook-registrations.ts';

/** A question to a hook. Large members are fetched on access. */
export interface HookQuestion {
  readonly ref: SessionRef;
  /** The id of the consult: unique in the session, and unchanged if the question is repeated after a crash. */
  readonly effectId: string;
  readonly registration: HookRegistration;
  readonly payload: JsonObject;
  /** The current messages of the model's view. */
  readonly transcript: () => Promise<readonly Message[]>;
  /** Only at `transform_context`: the messages of the request, with the changes of earlier handlers. */
  readonly messages?: () => Promise<readonly Message[]>;
  /** Sends durable inbox feedback to the model. At most 2 KiB; the rest is cut. */
  readonly onFeedback: (text: string) => void;
}

/** The reply: the handler's return value with wire names, or a failure. */
export type HookReply =
  | { readonly status: 'returned'; readonly raw: unknown }
  | {
      readonly status: 'failed';
      readonly code: 'hook_threw' | 'hook_unavailable' | 'return_unreadable' | 'verdict_invalid';
      readonly message: string;
    };

/** A question to a hook, as an instance of a service receives it. */
export interface ReceivedQuestion {
  readonly ref: SessionRef;
  readonly effectId: string;
  /** The id of the hook. */
  readonly hook: string;
  /** `HookArgs` (hook-services.ts), not yet validated. */
  readonly args: JsonObject;
  /** Aborts when the host no longer waits for the answer. */
  readonly signal: AbortSignal;
  readonly traceparent: string | undefined;
  onFeedback(text: string): void;
}
