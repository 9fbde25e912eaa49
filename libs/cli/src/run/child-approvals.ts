import { createEventTranslator, type Session, type UiEvent } from '@coxswain/client';
import type { JournalRecord } from '@coxswain/protocol';
import { type OpenApproval, OpenApprovals } from './open-approvals.ts';

/** Sessions of one tree that are followed at once; of those beyond `cox approval list` tells. */
const FOLLOWED_MAX = 128;

/** A session that was started for a call of another. */
export interface ChildSession {
  readonly id: string;
  readonly persona: string;
}

/** How a tree is followed. */
export interface FollowTree {
  readonly sessionOf: (id: string) => Session;
  /** Resolves when the stored commands of a session are processed: what they decide waits for no person. */
  readonly untilTaken?: ((id: string) => Promise<void>) | undefined;
  /** A record of one of them, once what it says of approvals is taken in. */
  readonly saw: (record: JournalRecord, events: readonly UiEvent[], child: ChildSession) => void;
  /** One of them can be followed no longer. */
  readonly lost: (child: ChildSession, error: Error) => void;
}

interface Followed {
  readonly child: ChildSession;
  readonly session: Session;
  readonly approvals: OpenApprovals;
  readonly leaving: AbortController;
  begun: boolean;
}

/**
 * Pending approvals in the child sessions of a session, at any depth. The journal of each child is followed while its
 * parent's journal says that it is open.
 */
export class ChildApprovals {
  readonly #tree: FollowTree;
  readonly #followed = new Map<string, Followed>();

  constructor(tree: FollowTree) {
    this.#tree = tree;
  }

  /** Of all of them, those of one session together. */
  get list(): readonly OpenApproval[] {
    return [...this.#followed.values()].flatMap(({ approvals }) => approvals.list);
  }

  /** Takes in an event of the session at the top, or of one below it. What it has started is followed from {@link begin} on. */
  add(event: UiEvent): void {
    if (event.type === 'child_ended') this.#leave(event.session);
    if (event.type !== 'child_started') return;
    const { session: id, persona } = event;
    if (this.#followed.has(id) || this.#followed.size >= FOLLOWED_MAX) return;
    const session = this.#tree.sessionOf(id);
    const approvals = new OpenApprovals(session);
    this.#followed.set(id, {
      child: { id, persona },
      session,
      approvals,
      leaving: new AbortController(),
      begun: false,
    });
  }

  /** Follows what is open by now. Whoever reads the past calls it at its end: most children in it have ended. */
  begin(): void {
    for (const followed of this.#followed.values()) {
      if (followed.begun) continue;
      followed.begun = true;
      const { child, leaving } = followed;
      void this.#read(followed, leaving.signal).catch((error: Error) => {
        if (leaving.signal.aborted) return;
        this.#leave(child.id);
        this.#tree.lost(child, error);
      });
    }
  }

  /** Leaves all of them. */
  close(): void {
    for (const id of [...this.#followed.keys()]) this.#leave(id);
  }

  #leave(id: string): void {
    this.#followed.get(id)?.leaving.abort();
    this.#followed.delete(id);
  }

  async #read({ child, session, approvals }: Followed, signal: AbortSignal): Promise<void> {
    const translator = createEventTranslator();
    await this.#tree.untilTaken?.(child.id);
    const present = (await session.newest())?.n ?? 0;
    let past: [JournalRecord, UiEvent[]][] = [];
    for await (const record of session.records({ signal })) {
      if (signal.aborted) return;
      const events: UiEvent[] = translator.record(record);
      for (const event of events) {
        approvals.add(event);
        this.add(event);
      }
      if (record.n < present) {
        if (events.some(({ type }) => type === 'approval_needed')) past.push([record, events]);
        continue;
      }
      this.begin();
      // Of what was asked before, only what nobody has decided yet is anybody's concern.
      const isOpen = (event: UiEvent) =>
        event.type === 'approval_needed' && approvals.list.some(({ callId }) => callId === event.callId);
      for (const [earlier, told] of past) if (told.some(isOpen)) this.#tree.saw(earlier, told.filter(isOpen), child);
      past = [];
      this.#tree.saw(record, events, child);
    }
  }
}
