/**
 * Relations between sessions: parents, children and senders of messages, with the depth and length of their chains.
 */
import * as z from 'zod';
import { STORED_REMINDER_FIELDS } from '../journal/reminders.ts';
import { BOUNDS } from '../wire/bounds.ts';
import { canonicalJson } from '../wire/canonical-json.ts';
import { listOf } from '../wire/containers.ts';
import { fingerprint, ID_PATTERN } from '../wire/ids.ts';
import { BasePermissions, type PinnedPermissions } from './permissions.ts';

const Session = z.string().regex(ID_PATTERN);
/** The id of an effect in commands between sessions. */
export const EffectIdText = z.string().regex(/^\d{1,15}-\d{1,15}$/);

/** The rules of a session that also bind all its descendants. */
export const Ceiling = z.strictObject({ session: Session, permissions: BasePermissions });
export type Ceiling = z.infer<typeof Ceiling>;

/** The link of a child to its parent. Only hosts set it. */
export const ParentLink = z.strictObject({
  session: Session,
  /** The parent's call, and the effect that started the child. */
  call_id: z.string().min(1).max(256),
  effect_id: EffectIdText,
  /** Epoch and turn of the parent at the start. The progress of the child contains them, for watchers of the call. */
  epoch: z.number().int().positive(),
  turn: z.number().int().nonnegative(),
  /** The session at the top of the tree. */
  root: Session,
  /** Generations between this child and the root, from 1. */
  depth: z.number().int().min(1).max(BOUNDS.depthMax),
  /** Further generations allowed below the child. */
  depth_left: z.number().int().min(0).max(BOUNDS.depthMax),
  /** Length of the chain of messages that caused the start. */
  hops: z.number().int().min(0).max(BOUNDS.hopsMax),
  /** The rules of the ancestors, the topmost first. Equal rules occur once. */
  ceiling: listOf(Ceiling).max(BOUNDS.depthMax),
});
export type ParentLink = z.infer<typeof ParentLink>;

/** The sender of a message between sessions. */
export const MessageSource = z.strictObject({
  session: Session,
  /** Length of the chain of messages, with this one. */
  hops: z.number().int().min(1),
});
export type MessageSource = z.infer<typeof MessageSource>;

/** A reminder that a child inherits. */
export const InheritedReminder = z.strictObject({
  command_id: z.string().min(1).max(256),
  from: Session,
  body: z.string().min(1),
  ...STORED_REMINDER_FIELDS,
});
export type InheritedReminder = z.infer<typeof InheritedReminder>;

/**
 * How a session receives the message: as a steer, an interrupt, a follow-up, or as the next prompt of an ended session.
 */
export const MessageMode = z.enum(['steer', 'interrupt', 'followup', 'prompt']);
export type MessageMode = z.infer<typeof MessageMode>;

/** The id of the child session for an effect: 128 bits, derived from the parent's id and the effect's id. */
export function childIdOf(parent: string, effectId: string): string {
  return fingerprint(`${parent}/${effectId}`) + fingerprint(`${effectId} of ${parent}`);
}

const SESSION_ACTOR = 'session:';

/** The actor name of a session in commands to other sessions. */
export function sessionActor(session: string): { readonly name: string; readonly verified: false } {
  return { name: `${SESSION_ACTOR}${session}`, verified: false };
}

/** Whether an actor name is reserved for sessions. */
export function isSessionActor(name: string): boolean {
  return name.trimStart().startsWith(SESSION_ACTOR);
}

/** The text of a message from another session for the model, with the sender's id, so that the model can reply. */
export function messageText(body: string, from: MessageSource | undefined): string {
  return from ? `Message from session ${from.session}:\n\n${body}` : body;
}

/** The rules above a new child session: those above the session, then its own, unless equal rules are among them. */
export function ceilingBelow(session: string, { ceiling = [], ...own }: PinnedPermissions): Ceiling[] {
  const said = new Set(ceiling.map(({ permissions }) => canonicalJson(permissions)));
  return said.has(canonicalJson(own)) ? [...ceiling] : [...ceiling, { session, permissions: own }];
}
