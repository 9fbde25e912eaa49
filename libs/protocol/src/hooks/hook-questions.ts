/** One question to one handler, and what comes back: the same whoever asks, and wherever the handler runs. */

import type { Message } from '../journal/messages.ts';
import type { SessionRef } from '../wire/ids.ts';
import type { JsonObject } from '../wire/json.ts';
import type { HookRegistration } from './hook-registrations.ts';

/** A question to a hook. Large members are fetched on access. */
export interface HookQuestion {
  readonly ref: SessionRef;
  /** The consult that it is a part of: unique in the session, and the same when it is asked again after a crash. */
  readonly effectId: string;
  readonly registration: HookRegistration;
  readonly payload: JsonObject;
  /** What models are shown now. */
  readonly transcript: () => Promise<readonly Message[]>;
  /** At `transform_context` only: what the request would show, as the handlers before this one have left it. */
  readonly messages?: () => Promise<readonly Message[]>;
  /** Inbox feedback for the model, durable. At most 2 KiB; the rest is cut. */
  readonly onFeedback: (text: string) => void;
}

/** What came back: the handler's return in the form of the wire, or why there is none. */
export type HookReply =
  | { readonly status: 'returned'; readonly raw: unknown }
  | {
      readonly status: 'failed';
      readonly code: 'hook_threw' | 'hook_unavailable' | 'return_unreadable' | 'verdict_invalid';
      readonly message: string;
    };
