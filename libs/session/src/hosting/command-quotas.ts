/**
 * Enforces the quotas of tenants on this host (`Quotas` in libs/protocol). `SessionIntake` (runner/session-intake.ts)
 * asks it about each command, and rejects a command beyond a quota.
 *
 * QUOTA-1  A command beyond a quota leaves no record. Its sender gets a rejection as a receipt, if the command names an
 *          inbox for receipts. The sender may send the same command again.
 * QUOTA-2  Controls (`CONTROLS`, such as cancel and approve) have their own rates and no other quota, so that a flood
 *          of messages cannot keep a person from stopping a run.
 * QUOTA-3  The tenant is in the subject of a command, and the server restricts every key to its subjects. The sender is in the
 *          command itself, because NATS does not name a publisher. Rates per sender separate honest senders, rates per tenant
 *          bound all.
 * QUOTA-4  No quota rejects commands of hosts and workers: a lost result would leave its call open.
 * QUOTA-5  Each host counts rates and queued bytes for itself. Sessions and stored bytes are measured for all hosts
 *          together (`TenantUsage` in libs/ports). To the sessions, each host adds those that it has started since.
 */
import type { Clock, MeasuredUsage, TenantUsage } from '@coxswain/ports';
import {
  INJECTION_VERBS,
  INTERNAL_VERBS,
  isTenantsInbox,
  type QuotaName,
  type Quotas,
  type SessionRef,
  type TenantId,
} from '@coxswain/protocol';
import { RequestRates } from './request-rates.ts';

/** A command as quotas see it. */
export interface CountedCommand {
  readonly ref: SessionRef;
  readonly verb: string;
  /** Length of the body in bytes. */
  readonly bytes: number;
  /** `Cox-Receipt-To`, if it is valid. */
  readonly receiptTo?: string | undefined;
  /** The name of its actor. */
  readonly actor?: string | undefined;
  /** Whether the session has no record yet. */
  readonly isNew: boolean;
}

/** A quota that is used up. */
export interface QuotaProblem {
  readonly quota: QuotaName;
  readonly message: string;
  /** The time after which the command may be accepted, milliseconds, if known. */
  readonly retryAfterMs?: number | undefined;
}

/** The ports of quotas. */
export interface QuotaPorts {
  readonly clock: Pick<Clock, 'monotonicMs'>;
  /** Without it neither sessions nor stored bytes are limited. */
  readonly usage?: TenantUsage | undefined;
}

interface Rates {
  readonly quotas: Quotas;
  readonly tenant: RequestRates;
  readonly senders: RequestRates;
}

/** The counts of one tenant. */
interface Tenant {
  readonly controls: Rates;
  readonly messages: Rates;
  /** Queued bytes by session. A session without any has no entry. */
  readonly pending: Map<SessionRef['sessionId'], number>;
  pendingBytes: number;
  /** Sessions that started on this host since the measurement. */
  started: number;
  measured: MeasuredUsage | null;
}

const CONTROLS: ReadonlySet<string> = new Set(['cancel', 'cancel_call', 'suspend', 'resume', 'approve', 'delete']);
const QUEUED: ReadonlySet<string> = new Set([...INJECTION_VERBS, 'replace']);
const INTERNAL: ReadonlySet<string> = new Set(INTERNAL_VERBS);
/**
 * Maximum numbers of tenants, and of senders of one tenant, with their own counts. Beyond them the host forgets the
 * tenant whose quotas it has known for longest, and the sender that has sent nothing for longest.
 */
const TENANTS_MAX = 10_000;
const SENDERS_MAX = 1_000;

/** The quotas of one host. */
export class CommandQuotas {
  readonly #ports: QuotaPorts;
  readonly #quotasOf: (tenant: TenantId) => Quotas;
  readonly #tenants = new Map<TenantId, Tenant>();

  /** @param quotasOf the quotas of a tenant. Called for each command, so that quotas may change. */
  constructor(ports: QuotaPorts, quotasOf: (tenant: TenantId) => Quotas) {
    this.#ports = ports;
    this.#quotasOf = quotasOf;
  }

  /** Counts a command. @returns the quota that it exceeds, or null. Commands of hosts and workers are not counted (QUOTA-4). */
  take(command: CountedCommand): QuotaProblem | null {
    const { ref, verb } = command;
    if (INTERNAL.has(verb)) return null;
    const quotas = this.#quotasOf(ref.tenant);
    const tenant = this.#tenant(ref.tenant, quotas);
    const rateProblem = this.#rateProblem(tenant, command);
    if (rateProblem || CONTROLS.has(verb)) return rateProblem;
    if (command.isNew)
      return verb === 'start' ? (this.sessionProblem(ref.tenant) ?? this.#storedProblem(tenant, quotas)) : null;
    if (QUEUED.has(verb) && tenant.pendingBytes + command.bytes > quotas.pending_bytes)
      return {
        quota: 'pending_bytes',
        message: `the tenant's sessions on this host have ${tenant.pendingBytes} bytes of queued messages; the quota is ${quotas.pending_bytes}`,
      };
    return this.#storedProblem(tenant, quotas);
  }

  /** The reason why the tenant may start no further session, or null; null also before its first measurement. */
  sessionProblem(id: TenantId): QuotaProblem | null {
    const quotas = this.#quotasOf(id);
    if (quotas.sessions === null) return null;
    const tenant = this.#tenant(id, quotas);
    const measured = this.#measured(id, tenant);
    if (!measured || measured.sessions + tenant.started < quotas.sessions) return null;
    return {
      quota: 'sessions',
      message: `the tenant has ${measured.sessions + tenant.started} sessions; the quota is ${quotas.sessions}`,
    };
  }

  /** Counts a session that started on this host. */
  noteStart(id: TenantId): void {
    const quotas = this.#quotasOf(id);
    const tenant = this.#tenant(id, quotas);
    if (quotas.sessions !== null) this.#measured(id, tenant);
    tenant.started++;
  }

  /** The queued bytes of the sessions that the predicate selects no longer count: these sessions are another host's. */
  dropPending(isObsolete: (ref: SessionRef) => boolean): void {
    for (const [id, tenant] of this.#tenants)
      for (const [sessionId, bytes] of tenant.pending) {
        if (!isObsolete({ tenant: id, sessionId })) continue;
        tenant.pending.delete(sessionId);
        tenant.pendingBytes -= bytes;
      }
  }

  /** Sets the queued bytes of a session. @param bytes 0 once the session is another host's. */
  notePending({ tenant: id, sessionId }: SessionRef, bytes: number): void {
    const tenant = this.#tenant(id, this.#quotasOf(id));
    tenant.pendingBytes += bytes - (tenant.pending.get(sessionId) ?? 0);
    if (bytes === 0) tenant.pending.delete(sessionId);
    else tenant.pending.set(sessionId, bytes);
  }

  #rateProblem(tenant: Tenant, { verb, receiptTo, actor }: CountedCommand): QuotaProblem | null {
    const { tenant: all, senders, quotas } = CONTROLS.has(verb) ? tenant.controls : tenant.messages;
    const sender = `${inboxOf(receiptTo)}/${actor ?? ''}`;
    const own = senders.take(sender);
    if (own > 0)
      return {
        quota: 'sender_commands_per_second',
        message: `this sender may send ${quotas.sender_commands_per_second} commands per second; retry in ${own} s`,
        retryAfterMs: own * 1_000,
      };
    const wait = all.take('');
    if (wait === 0) return null;
    return {
      quota: 'commands_per_second',
      message: `the tenant may send ${quotas.commands_per_second} commands per second; retry in ${wait} s`,
      retryAfterMs: wait * 1_000,
    };
  }

  #storedProblem(tenant: Tenant, { stored_bytes: most }: Quotas): QuotaProblem | null {
    const bytes = tenant.measured?.storedBytes ?? 0;
    if (most === null || bytes < most) return null;
    return { quota: 'stored_bytes', message: `the journals of the tenant have ${bytes} bytes; the quota is ${most}` };
  }

  #measured(id: TenantId, tenant: Tenant): MeasuredUsage | null {
    const measured = this.#ports.usage?.of(id) ?? null;
    if (measured !== tenant.measured) {
      tenant.measured = measured;
      tenant.started = 0;
    }
    return measured;
  }

  #tenant(id: TenantId, quotas: Quotas): Tenant {
    const known = this.#tenants.get(id);
    if (known && areSame(known.messages.quotas, quotas)) {
      if (quotas.stored_bytes !== null) this.#measured(id, known);
      return known;
    }
    const tenant: Tenant = {
      pending: new Map(),
      pendingBytes: 0,
      started: 0,
      measured: null,
      ...known,
      controls: this.#rates(quotas),
      messages: this.#rates(quotas),
    };
    this.#tenants.delete(id);
    this.#tenants.set(id, tenant);
    const [oldest] = this.#tenants.keys();
    if (this.#tenants.size > TENANTS_MAX && oldest !== undefined) this.#tenants.delete(oldest);
    return tenant;
  }

  #rates(quotas: Quotas): Rates {
    const now = () => this.#ports.clock.monotonicMs();
    return {
      quotas,
      tenant: new RequestRates(quotas.commands_burst, quotas.commands_per_second, 1, now),
      senders: new RequestRates(quotas.sender_commands_burst, quotas.sender_commands_per_second, SENDERS_MAX, now),
    };
  }
}

/** Whether a tenant's quotas are unchanged. A configuration that is read again gives a new object with the same values. */
function areSame(known: Quotas, given: Quotas): boolean {
  return known === given || (Object.keys(given) as (keyof Quotas)[]).every((name) => known[name] === given[name]);
}

/**
 * The part of a receipt subject that identifies its sender: the four tokens `_INBOX.at.<tenant>.<user>` for a tenant's key,
 * otherwise the first two, such as `_INBOX.<connection>`.
 */
function inboxOf(receiptTo = ''): string {
  return receiptTo.split('.', isTenantsInbox(receiptTo) ? 4 : 2).join('.');
}
