/**
 * Hooks with answers of the test.
 */
import type { HookReply, HookRequest, Hooks } from '@coxswain/ports';
import { HookRegistration, type HookTable, type TenantId } from '@coxswain/protocol';

/** The answer of a handler to one question. */
export type Handler = (request: HookRequest, signal: AbortSignal) => Promise<HookReply>;

/** A handler with this return value. */
export const returns =
  (raw: unknown): Handler =>
  async () => ({ status: 'returned', raw });

/** A handler that throws. */
export const throws: Handler = async () => ({ status: 'failed', code: 'hook_threw', message: 'it threw' });

/** A handler that never answers. */
export const silent: Handler = () => new Promise(() => {});

/** A registration, with its defaults. */
export const hook = (point: HookRegistration['point'], id: string, more: Partial<HookRegistration> = {}) =>
  HookRegistration.parse({ id, point, ...more });

/** The hooks of one test. */
export class FakeHooks implements Hooks {
  registrations: HookTable = [];
  handlers: Readonly<Record<string, Handler>> = {};
  /** Every question. */
  readonly asked: HookRequest[] = [];

  readonly #watching = new Set<(tenant?: TenantId) => void>();

  table(): HookTable {
    return this.registrations;
  }

  onChange(changed: (tenant?: TenantId) => void): () => void {
    this.#watching.add(changed);
    return () => this.#watching.delete(changed);
  }

  /** Replaces the table. @param tenant the only tenant that is notified; undefined: all are. */
  change(registrations: HookTable, tenant?: TenantId): void {
    this.registrations = registrations;
    for (const changed of this.#watching) changed(tenant);
  }

  async ask(request: HookRequest, signal: AbortSignal): Promise<HookReply> {
    this.asked.push(request);
    return (this.handlers[request.registration.id] ?? returns(undefined))(request, signal);
  }
}
