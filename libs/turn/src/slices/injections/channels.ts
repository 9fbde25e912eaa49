/**
 * The channels: what the kind of a message decides. Each row answers the questions that a new channel raises. When a
 * message is delivered, and whether it continues a run, depends on its mode instead (seams.ts, `messageContinuesRun`).
 */
import type { EventType, InjectionVerb } from '@coxswain/protocol';
import type { PendingFollowup, PendingInjection } from './state.ts';

interface Channel {
  /** `user_prompt_submit` hooks check its messages before their delivery (message-hooks.ts). */
  readonly guarded: boolean;
  /** A compaction keeps its messages until the end of their run. Other messages can ask for it (`pinOf`). */
  readonly pinned: boolean;
}

/** The traits of each channel. */
export const CHANNELS: Readonly<Record<InjectionVerb, Channel>> = {
  steer: { guarded: true, pinned: true },
  remind: { guarded: false, pinned: false },
  followup: { guarded: true, pinned: false },
};

/** The channel of each event that queues a message. */
export const CHANNEL_OF_EVENT = {
  steering_received: 'steer',
  reminder_injected: 'remind',
  followup_received: 'followup',
} as const satisfies { readonly [type in EventType]?: InjectionVerb };

/** The types of the events that queue a message. */
export type QueueingEvent = keyof typeof CHANNEL_OF_EVENT;

/** The channel of a queued message. */
export function channelOf(message: PendingInjection | PendingFollowup): InjectionVerb {
  return 'kind' in message ? message.kind : 'followup';
}
