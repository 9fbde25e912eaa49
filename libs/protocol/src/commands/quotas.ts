/**
 * Quotas: limits for a tenant, and for each of its senders. Hosts enforce them; docs/operations/set-quotas.md explains
 * how.
 */
import * as z from 'zod';

const rate = (perSecond: number) => z.number().positive().max(1_000_000).default(perSecond);
const burst = (commands: number) => z.number().int().positive().max(1_000_000).default(commands);
const BYTES_MAX = 2 ** 50;
const bytes = () => z.number().int().positive().max(BYTES_MAX);

/** The quotas of one tenant. Absent members have their defaults. */
export const Quotas = z.strictObject({
  /**
   * Commands of all senders per second, at each host. Controls, such as a cancel or an approval, are counted apart from
   * other commands, each up to this rate.
   */
  commands_per_second: rate(1_000),
  /** Burst of commands of all senders, at each host. */
  commands_burst: burst(10_000),
  /** Commands of one sender per second, at each host. */
  sender_commands_per_second: rate(500),
  /** Burst of commands of one sender, at each host. */
  sender_commands_burst: burst(5_000),
  /** Queued steers, reminders and follow-ups of the tenant's sessions at each host together, in bytes. */
  pending_bytes: bytes().default(256 * 1024 * 1024),
  /** Sessions in the store without deleted ones; null: unlimited. */
  sessions: z.number().int().positive().nullable().default(null),
  /** Journals in the store together, in bytes; null: unlimited. */
  stored_bytes: bytes().nullable().default(null),
});
export type Quotas = Readonly<z.infer<typeof Quotas>>;
/** Quotas before defaults. */
export type QuotasInput = Readonly<z.input<typeof Quotas>>;
/** The name of a quota in rejections and metrics. */
export type QuotaName =
  | 'commands_per_second'
  | 'sender_commands_per_second'
  | 'pending_bytes'
  | 'sessions'
  | 'stored_bytes';

/** The quotas of a tenant without configuration. */
export const DEFAULT_QUOTAS: Quotas = Quotas.parse({});
