/** Hooks that answer as the test says. */
import type { HookReply, HookRequest, Hooks } from '@coxswain/ports';
import { HookRegistration, type HookTable } from '@coxswain/protocol';

/** What a handler does with one question. */
export type Handler = (request: HookRequest, signal: AbortSignal) => Promise<HookReply>;

/** A handler that returns this. */
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
  /** Every question, as it was asked. */
  readonly asked: HookRequest[] = [];

  readonly #watching = new Set<() => void>();

  table(): HookTable {
    return this.registrations;
  }

  onChange(changed: () => void): () => void {
    this.#watching.add(changed);
    return () => this.#watching.delete(changed);
  }

  /** The table becomes another one. */
  change(registrations: HookTable): void {
    this.registrations = registrations;
    for (const changed of this.#watching) changed();
  }

  async ask(request: HookRequest, signal: AbortSignal): Promise<HookReply> {
    this.asked.push(request);
    return (this.handlers[request.registration.id] ?? returns(undefined))(request, signal);
  }
}
