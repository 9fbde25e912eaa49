/** Who sent a command: as a client states it, and as journals store it. */
import * as z from 'zod';
import { BOUNDS } from '../wire/bounds.ts';

/** The sender of a command, as records, statuses and tombstones store it. */
export const StoredActor = z.strictObject({ name: z.string(), verified: z.boolean() });
/**
 * The sender of a command. `verified` is always false: NATS does not report the publisher, so a sender can choose the
 * name.
 */
export type Actor = z.infer<typeof StoredActor>;

// A new schema each time: a shared one becomes a `$ref` in every generated schema of a command.
const actorName = () => z.string().trim().min(1).max(BOUNDS.actorMaxChars);

/** The sender in the body of a command: a name, or a name with `verified: false`. */
export const Actor = z.union([
  actorName().transform((name): Actor => ({ name, verified: false })),
  z.strictObject({ name: actorName(), verified: z.literal(false).default(false) }).transform((actor): Actor => actor),
]);
