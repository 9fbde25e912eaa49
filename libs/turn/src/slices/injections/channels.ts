/**
 * The channels of queued messages (steer, remind, followup), and the traits of each. When a steer or a reminder is
 * delivered, and whether it continues a run, depends on its mode instead (`dueAt` in seam-passes.ts, `messageContinuesRun` in
 * waiting.ts).
 */
import type { EventType, InjectionVerb } from '@coxswain/protocol';
import type { PendingFollowup, PendingInjection } from './state.ts';

interface Channel {
  /** `user_prompt_submit` hooks check its messages before their delivery (message-hooks.ts). */
  readonly checkedByHooks: boolean;
  /** Compactions keep its messages until the next run starts. Other pinned messages: `pinOf` (view-account.ts). */
  readonly pinned: boolean;
}

/** The traits of each channel. */
export const CHANNELS: Readonly<Record<InjectionVerb, Channel>> = {
  steer: { checkedByHooks: true, pinned: true },
  remind: { checkedByHooks: false, pinned: false },
  followup: { checkedByHooks: true, pinned: false },
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
