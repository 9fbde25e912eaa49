/** Quotas of a tenant: what its keys may use of a bus together. A host enforces them; docs/operations/set-quotas.md says how exactly. */
import * as z from 'zod';

const rate = (perSecond: number) => z.number().positive().max(1_000_000).default(perSecond);
const burst = (commands: number) => z.number().int().positive().max(1_000_000).default(commands);
const BYTES_MAX = 2 ** 50;
const bytes = () => z.number().int().positive().max(BYTES_MAX);

/** The quotas of one tenant. Members that are left out have their defaults. */
export const Quotas = z.strictObject({
  /** Commands of all senders, a second, at each host. */
  commands_per_second: rate(1_000),
  /** Commands of all senders at once. */
  commands_burst: burst(10_000),
  /** Commands of one sender, a second, at each host. */
  sender_commands_per_second: rate(500),
  /** Commands of one sender at once. */
  sender_commands_burst: burst(5_000),
  /** Queued steers, reminders and follow-ups of all sessions of a host together, bytes. */
  pending_bytes: bytes().default(256 * 1024 * 1024),
  /** Sessions in the store, deleted ones not counted; null: any number. */
  sessions: z.number().int().positive().nullable().default(null),
  /** Journals in the store together, bytes; null: any number. */
  stored_bytes: bytes().nullable().default(null),
});
/** See {@link Quotas}. */
export type Quotas = Readonly<z.infer<typeof Quotas>>;
/** Quotas as a configuration writes them. */
export type QuotasInput = Readonly<z.input<typeof Quotas>>;
/** The name of a quota, as rejections and metrics say it. */
export type QuotaName =
  | 'commands_per_second'
  | 'sender_commands_per_second'
  | 'pending_bytes'
  | 'sessions'
  | 'stored_bytes';

/** The quotas of a tenant that no configuration names. */
export const DEFAULT_QUOTAS: Quotas = Quotas.parse({});
