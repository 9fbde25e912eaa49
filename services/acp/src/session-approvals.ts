import type { AgentContext } from '@agentclientprotocol/sdk';
import type { BusClient, UiEvent } from '@coxswain/client';
import { ChildApprovals, type ChildJournal } from '@coxswain/client/transport';
import type { CurrentBus } from './current-bus.ts';
import { writeDiagnostic } from './diagnostics.ts';
import { type PendingCall, PermissionRequests } from './permission-requests.ts';

/** The session and the editor of the approvals. */
export interface SessionApprovalsOptions {
  readonly client: AgentContext;
  readonly bus: CurrentBus;
  readonly sessionId: string;
  readonly root: string;
  isConnected(): boolean;
}

/** Collects pending approvals of an open session and of its child sessions, and requests them from the editor. */
export class SessionApprovals {
  readonly #sessionId: string;
  readonly #own = new Map<string, PendingCall>();
  readonly #below = new Map<string, PendingCall['event']>();
  readonly #children: ChildApprovals;
  readonly #permissions: PermissionRequests;
  #isClosed = false;

  constructor({ client, bus, sessionId, root, isConnected }: SessionApprovalsOptions) {
    this.#sessionId = sessionId;
    this.#permissions = new PermissionRequests({
      client,
      sessionId,
      root,
      isConnected,
      use: (id, task) => bus.use((open) => task(open.client.session(id))),
    });
    this.#children = new ChildApprovals({
      sessionOf: (id) => bus.latest.session(id),
      journalOf: (id) => journalAcross(bus, id),
      saw: (_record, events, child) => {
        for (const event of events)
          if (event.type === 'approval_needed') this.#below.set(`${child.id}/${event.callId}`, event);
        this.ask();
      },
      lost: (child, error) => writeDiagnostic(`${child.id} is no longer followed: ${error.message}`),
    });
  }

  /** Processes an event of the session. Requests are sent by {@link ask}. */
  add(event: UiEvent): void {
    this.#children.add(event);
    if (event.type === 'approval_needed') this.#own.set(event.callId, { sessionId: this.#sessionId, event });
    else if (event.type === 'approval_settled' || event.type === 'call_ended') this.#own.delete(event.callId);
    else if (event.type === 'run_ended') this.#own.clear();
  }

  /**
   * Requests the pending approvals, and withdraws the requests that are no longer pending. Does nothing after
   * {@link close}: a record may still be processed then.
   */
  ask(): void {
    if (this.#isClosed) return;
    this.#children.begin();
    const below = this.#children.list.flatMap(({ session: { id }, callId }): PendingCall[] => {
      const event = this.#below.get(`${id}/${callId}`);
      return event ? [{ sessionId: id, event }] : [];
    });
    const waiting = new Set(below.map(({ sessionId, event }) => `${sessionId}/${event.callId}`));
    for (const key of this.#below.keys()) if (!waiting.has(key)) this.#below.delete(key);
    this.#permissions.sync([...this.#own.values(), ...below]);
  }

  /** Withdraws all requests from the editor. The approvals stay pending. */
  close(): void {
    this.#isClosed = true;
    this.#children.close();
    this.#permissions.close();
  }
}

/** The journal of a session, read on one bus after another. Records have neither gaps nor repeats. */
function journalAcross(bus: CurrentBus, id: string): ChildJournal {
  return {
    newest: () => bus.use(({ client }) => client.session(id).newest()),
    async *records({ signal: leaving }) {
      let next = 1;
      const read = (client: BusClient, signal: AbortSignal) => client.session(id).records({ from: next, signal });
      for await (const record of bus.follow(leaving, read)) {
        next = record.n + 1;
        yield record;
      }
    },
  };
}
