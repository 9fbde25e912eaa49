/**
 * Quotas of a host: what the senders of a tenant may use of it.
 *
 * QUOTA-1  A command beyond a quota leaves no record: its sender gets a receipt, and may send the same command again.
 * QUOTA-2  Controls (cancel, approve and the like) have rates of their own, so that a flood of messages does not keep a person
 *     from stopping a run.
 * QUOTA-3  A tenant is what the subject of a command says, to which the server holds every key. A sender is what a command says of
 *     itself, as NATS does not say who has published: rates of senders keep honest senders apart, rates of tenants bound all.
 * QUOTA-4  Nothing that a host or a worker sends is refused: a result that is lost would leave its call open.
 */
import type { Clock, MeasuredUsage, TenantUsage } from '@coxswain/ports';
import { INTERNAL_VERBS, type QuotaName, type Quotas, type SessionRef, type TenantId } from '@coxswain/protocol';
import { RequestRates } from './request-rates.ts';

/** A command as quotas see it. */
export interface CountedCommand {
  readonly ref: SessionRef;
  readonly verb: string;
  /** Length of its body, bytes. */
  readonly bytes: number;
  /** `Cox-Receipt-To`, where it is a valid one. */
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
  /** After how many milliseconds the command may be taken, where that is known. */
  readonly retryAfterMs?: number | undefined;
}

/** What quotas are held against. */
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

/** What is kept of one tenant. */
interface Tenant {
  readonly controls: Rates;
  readonly messages: Rates;
  /** Bytes queued in its sessions, those with none left out. */
  readonly pending: Map<string, number>;
  pendingBytes: number;
  /** Sessions that began here since the measurement. */
  started: number;
  measured: MeasuredUsage | null;
}

const CONTROLS: ReadonlySet<string> = new Set(['cancel', 'cancel_call', 'suspend', 'resume', 'approve', 'delete']);
const QUEUED: ReadonlySet<string> = new Set(['steer', 'remind', 'followup', 'replace']);
const INTERNAL: ReadonlySet<string> = new Set(INTERNAL_VERBS);
/** Tenants of a host, and senders of one tenant, that are kept apart. Beyond that the oldest is forgotten. */
const TENANTS_MAX = 10_000;
const SENDERS_MAX = 1_000;

/** The quotas of one host. */
export class CommandQuotas {
  readonly #ports: QuotaPorts;
  readonly #quotasOf: (tenant: TenantId) => Quotas;
  readonly #tenants = new Map<TenantId, Tenant>();

  /** @param quotasOf the quotas of a tenant; asked again with every command, so that they may change. */
  constructor(ports: QuotaPorts, quotasOf: (tenant: TenantId) => Quotas) {
    this.#ports = ports;
    this.#quotasOf = quotasOf;
  }

  /** Counts a command. @returns the quota that it goes beyond, or null. */
  take(command: CountedCommand): QuotaProblem | null {
    const { ref, verb } = command;
    if (INTERNAL.has(verb)) return null;
    const quotas = this.#quotasOf(ref.tenant);
    const tenant = this.#tenant(ref.tenant, quotas);
    const late = this.#rateProblem(tenant, command);
    if (late || CONTROLS.has(verb)) return late;
    if (command.isNew)
      return verb === 'start' ? (this.sessionProblem(ref.tenant) ?? this.#storedProblem(tenant, quotas)) : null;
    if (QUEUED.has(verb) && tenant.pendingBytes + command.bytes > quotas.pending_bytes)
      return {
        quota: 'pending_bytes',
        message: `the sessions of the tenant have ${tenant.pendingBytes} bytes of queued messages; the quota is ${quotas.pending_bytes}`,
      };
    return this.#storedProblem(tenant, quotas);
  }

  /** Why the tenant may begin no further session, or null. */
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

  /** So many bytes are queued in a session of this host; 0 where it is another host's now. */
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

/** Whether a tenant's rates go on as they are: a configuration that is read again is another object with the same values. */
function areSame(known: Quotas, given: Quotas): boolean {
  return known === given || (Object.keys(given) as (keyof Quotas)[]).every((name) => known[name] === given[name]);
}

/** The two tokens with which the inboxes of one key begin. */
function inboxOf(receiptTo = ''): string {
  return receiptTo.split('.', 2).join('.');
}
