/** Human-in-the-loop approvals of one session, as objects. */
import type { EventOf, JournalRecord, Json, SessionStatus } from '@coxswain/protocol';
import type { CommandInput, SentCommand } from './command-form.ts';
import type { SendOptions } from './outgoing-command.ts';
import type { Session } from './session-handle.ts';

/** Options for allowing a call. */
export interface ApproveOptions extends SendOptions {
  /** Arguments that replace those of the model. They are validated, and the hooks see the call again with them. */
  readonly args?: CommandInput<'approve'>['args'];
  readonly reason?: string | undefined;
  /** Also decides later calls of the same kind; `detail.remembered` of the receipt says which ones. */
  readonly remember?: CommandInput<'approve'>['remember'];
}

/** Options for denying a call. */
export type DenyOptions = Omit<ApproveOptions, 'args'>;

/** A tool call that waits for a human decision. The first decision counts. */
export class Approval {
  /** The session that the call belongs to. */
  readonly session: Session;
  readonly callId: string;
  readonly tool: string;
  readonly args: Json;
  /** `rule:<name>` or `hook:<name>`; `unknown_outcome`: a crash left open whether the call ran. */
  readonly requestedBy: string;
  /** The question to the person; null if it is whether the call may run. */
  readonly question: string | null;
  /** Times of the request and of the expiry, ISO 8601; `expiresAt` is null without an expiry. */
  readonly since: string;
  readonly expiresAt: string | null;

  /** Created by {@link Session.approvals} and `Client.pendingApprovals`. */
  constructor(session: Session, asked: SessionStatus['approvals'][number]) {
    this.session = session;
    this.callId = asked.call_id;
    this.tool = asked.tool;
    this.args = asked.args;
    this.requestedBy = asked.requested_by;
    this.question = asked.question ?? null;
    this.since = asked.since;
    this.expiresAt = asked.expires_at ?? null;
  }

  /**
   * Allows the call.
   * @returns by default after the session has recorded the decision; see `wait` of the options.
   * @throws CommandRejectedError `already_decided`, `not_pending` or `invalid_arguments`; InvalidOptionError; the
   *   errors of every command.
   */
  allow(options: ApproveOptions = {}): Promise<SentCommand> {
    return this.session.approve(this.callId, options);
  }

  /** Denies the call. The model receives the reason. Otherwise as {@link allow}. */
  deny(options: DenyOptions = {}): Promise<SentCommand> {
    return this.session.deny(this.callId, options);
  }
}

/**
 * The approvals of a run: first the pending ones, then each later one when it is requested.
 * @param records The records of the run, in order.
 * @param present The newest record at the start. Approvals that were decided by then are left out.
 * @param isEnd Whether the run is over after a record.
 */
export async function* approvalsOf(
  session: Session,
  records: AsyncGenerator<JournalRecord, void, undefined>,
  { present, isEnd }: { readonly present: number; readonly isEnd: (record: JournalRecord) => boolean },
): AsyncGenerator<Approval, void, undefined> {
  const waiting = new Map<string, Approval>();
  for await (const record of records) {
    for (const event of record.events) {
      if (event.type === 'approval_requested')
        waiting.set(event.call_id, new Approval(session, askedBy(event, record.at)));
      else if (event.type === 'approval_decided') waiting.delete(event.call_id);
    }
    if (record.n >= present) {
      yield* waiting.values();
      waiting.clear();
    }
    if (isEnd(record)) return;
  }
}

function askedBy(event: EventOf<'approval_requested'>, at: string): SessionStatus['approvals'][number] {
  const { call_id, tool, args, requested_by, question, expire_after_ms } = event;
  return {
    call_id,
    tool,
    args,
    requested_by,
    since: at,
    ...(question === undefined ? {} : { question }),
    ...(expire_after_ms === undefined ? {} : { expires_at: new Date(Date.parse(at) + expire_after_ms).toISOString() }),
  };
}
