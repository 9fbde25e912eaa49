import type { JournalRecord } from '@coxswain/protocol';
import { createEventTranslator } from './event-translator.ts';
import { type OpenApproval, OpenApprovals } from './open-approvals.ts';
import type { Session } from './session-handle.ts';
import type { UiEvent } from './ui-events.ts';

/**
 * Maximum number of sessions in one tree that are followed. `cox approval list` also shows the approvals of the others.
 */
const FOLLOWED_MAX = 128;

/** A session that was started by a call of another session. */
export interface ChildSession {
  readonly id: string;
  readonly persona: string;
}

/** The part of a journal's reads that following needs. */
export interface ChildJournal {
  newest(): Promise<Pick<JournalRecord, 'n'> | null>;
  records(options: { readonly signal: AbortSignal }): AsyncIterable<JournalRecord>;
}

/** How to follow a tree of sessions. */
export interface FollowTree {
  readonly sessionOf: (id: string) => Session;
  /** Reads the journal of a child. Default: by its session, until the client closes. */
  readonly journalOf?: ((id: string) => ChildJournal) | undefined;
  /** Resolves when the stored commands of a session are processed: they may decide its approvals. */
  readonly untilProcessed?: ((id: string) => Promise<void>) | undefined;
  /** Called with a record of a child, after its approvals were updated. */
  readonly saw: (record: JournalRecord, events: readonly UiEvent[], child: ChildSession) => void;
  /** Called when a child can no longer be followed. */
  readonly lost: (child: ChildSession, error: Error) => void;
}

interface Followed {
  readonly child: ChildSession;
  readonly session: Session;
  readonly approvals: OpenApprovals;
  readonly leaving: AbortController;
  isFollowing: boolean;
}

/**
 * Pending approvals in the child sessions of a session, at any depth. The journal of each child is followed while its
 * parent's journal shows the child as open.
 */
export class ChildApprovals {
  readonly #tree: FollowTree;
  readonly #followed = new Map<string, Followed>();

  constructor(tree: FollowTree) {
    this.#tree = tree;
  }

  /** The pending approvals of all children, grouped by session. */
  get list(): readonly OpenApproval[] {
    return [...this.#followed.values()].flatMap(({ approvals }) => approvals.list);
  }

  /** Processes an event of the top session or of a descendant. A started child is followed after {@link begin}. */
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
      isFollowing: false,
    });
  }

  /**
   * Follows the children that are open now. Call this at the end of the history, because most children in it have
   * ended.
   */
  begin(): void {
    for (const followed of this.#followed.values()) {
      if (followed.isFollowing) continue;
      followed.isFollowing = true;
      const { child, leaving } = followed;
      void this.#read(followed, leaving.signal).catch((error: Error) => {
        if (leaving.signal.aborted) return;
        this.#leave(child.id);
        this.#tree.lost(child, error);
      });
    }
  }

  /** Stops following all children. */
  close(): void {
    for (const id of [...this.#followed.keys()]) this.#leave(id);
  }

  #leave(id: string): void {
    this.#followed.get(id)?.leaving.abort();
    this.#followed.delete(id);
  }

  async #read({ child, session, approvals }: Followed, signal: AbortSignal): Promise<void> {
    const translator = createEventTranslator();
    await this.#tree.untilProcessed?.(child.id);
    const journal: ChildJournal = this.#tree.journalOf?.(child.id) ?? session;
    const present = (await journal.newest())?.n ?? 0;
    let past: [JournalRecord, UiEvent[]][] = [];
    for await (const record of journal.records({ signal })) {
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
      // Of the earlier approvals, only those that are still pending are reported.
      const isOpen = (event: UiEvent) =>
        event.type === 'approval_needed' && approvals.list.some(({ callId }) => callId === event.callId);
      for (const [earlier, pastEvents] of past)
        if (pastEvents.some(isOpen)) this.#tree.saw(earlier, pastEvents.filter(isOpen), child);
      past = [];
      this.#tree.saw(record, events, child);
    }
  }
}
