/** Crews: what sessions say of each other. Who is whose child, who sent a message, and how far both have come. */
import * as z from 'zod';
import { STORED_REMINDER_FIELDS } from '../journal/reminders.ts';
import { BOUNDS } from '../wire/bounds.ts';
import { canonicalJson } from '../wire/canonical-json.ts';
import { fingerprint, ID_PATTERN } from '../wire/ids.ts';
import { BasePermissions, type PinnedPermissions } from './permissions.ts';

const Session = z.string().regex(ID_PATTERN);
/** An effect's id, as commands between sessions name it. */
export const EffectIdText = z.string().regex(/^\d{1,15}-\d{1,15}$/);

/** The rules of a session that bind all below it. */
export const Ceiling = z.strictObject({ session: Session, permissions: BasePermissions });
/** See {@link Ceiling}. */
export type Ceiling = z.infer<typeof Ceiling>;

/** What a child knows of the session that started it. Only hosts say it. */
export const ParentLink = z.strictObject({
  session: Session,
  /** The call that the child is the work of, and the effect that started it. */
  call_id: z.string().min(1).max(256),
  effect_id: EffectIdText,
  /** Epoch and turn of the parent at the start: the identity of the progress that watchers of its call receive. */
  epoch: z.number().int().positive(),
  turn: z.number().int().nonnegative(),
  /** The session at the top of the tree. */
  root: Session,
  /** Generations below the root, from 1. */
  depth: z.number().int().min(1).max(BOUNDS.depthMax),
  /** Generations that there may be below the child. */
  depth_left: z.number().int().min(0).max(BOUNDS.depthMax),
  /** Messages that have led here, one after another. */
  hops: z.number().int().min(0).max(BOUNDS.hopsMax),
  /** The rules of every session above it, the topmost first. */
  ceiling: z.array(Ceiling).max(BOUNDS.depthMax),
});
/** See {@link ParentLink}. */
export type ParentLink = z.infer<typeof ParentLink>;

/** The session that a message is from. */
export const MessageSource = z.strictObject({
  session: Session,
  /** Messages that have led to this one, itself included. */
  hops: z.number().int().min(1),
});
/** See {@link MessageSource}. */
export type MessageSource = z.infer<typeof MessageSource>;

/** A reminder with which a child is born. */
export const InheritedReminder = z.strictObject({
  command_id: z.string().min(1).max(256),
  from: Session,
  body: z.string().min(1),
  ...STORED_REMINDER_FIELDS,
});
/** See {@link InheritedReminder}. */
export type InheritedReminder = z.infer<typeof InheritedReminder>;

/** How a message is taken: as a steer, an interrupt, a follow-up, or as the next prompt of a session that has ended. */
export const MessageMode = z.enum(['steer', 'interrupt', 'followup', 'prompt']);
/** See {@link MessageMode}. */
export type MessageMode = z.infer<typeof MessageMode>;

/** The id of the child that an effect of a session starts: 128 bits, which follow from both. */
export function childIdOf(parent: string, effectId: string): string {
  return fingerprint(`${parent}/${effectId}`) + fingerprint(`${effectId} of ${parent}`);
}

const SESSION_ACTOR = 'session:';

/** The name under which a session acts on another. */
export function sessionActor(session: string): { readonly name: string; readonly verified: false } {
  return { name: `${SESSION_ACTOR}${session}`, verified: false };
}

/** Whether a name is one that only sessions have. */
export function isSessionActor(name: string): boolean {
  return name.trimStart().startsWith(SESSION_ACTOR);
}

/** What a model is shown of a message from another session: it has to know whom to answer. */
export function messageText(body: string, from: MessageSource | undefined): string {
  return from ? `Message from session ${from.session}:\n\n${body}` : body;
}

/** The rules that bind what a session starts: its own, and those that bind itself. The same rules are not said twice. */
export function ceilingBelow(session: string, { ceiling = [], ...own }: PinnedPermissions): Ceiling[] {
  const said = new Set(ceiling.map(({ permissions }) => canonicalJson(permissions)));
  return said.has(canonicalJson(own)) ? [...ceiling] : [...ceiling, { session, permissions: own }];
}
