/** Approvals of one session as objects: a question that a person decides. */
import type { EventOf, JournalRecord, Json, SessionStatus } from '@coxswain/protocol';
import type { CommandInput, SentCommand } from './command-form.ts';
import type { SendOptions } from './outgoing-command.ts';
import type { Session } from './session-handle.ts';

/** How a call is allowed. */
export interface ApproveOptions extends SendOptions {
  /** Arguments in place of the model's: validated, and shown to the hooks again. */
  readonly args?: CommandInput<'approve'>['args'];
  readonly reason?: string | undefined;
  /** Later calls like it are decided the same way; the receipt's `detail.remembered` says which those are. */
  readonly remember?: CommandInput<'approve'>['remember'];
}

/** How a call is denied. */
export type DenyOptions = Omit<ApproveOptions, 'args'>;

/** A call that waits for a decision. The first decision stands. */
export class Approval {
  /** The session whose call it is. */
  readonly session: Session;
  readonly callId: string;
  readonly tool: string;
  readonly args: Json;
  /** `rule:<which>` or `hook:<which>`, or `unknown_outcome`: a crash left open whether the call ran. */
  readonly requestedBy: string;
  /** What is asked, where it is another question than whether the call may run. */
  readonly question: string | null;
  /** When it was asked, and when it expires by itself; ISO 8601. */
  readonly since: string;
  readonly expiresAt: string | null;

  /** Made by {@link Session.approvals}. */
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
   * Lets the call run.
   * @returns once the session has taken the decision.
   * @throws CommandRejectedError: `already_decided`, `not_pending`, `invalid_arguments`; InvalidOptionError.
   */
  allow(options: ApproveOptions = {}): Promise<SentCommand> {
    return this.session.approve(this.callId, options);
  }

  /** Refuses the call; the model reads the reason. Otherwise as {@link allow}. */
  deny(options: DenyOptions = {}): Promise<SentCommand> {
    return this.session.deny(this.callId, options);
  }
}

/**
 * The approvals of a run: those that wait already, and then each as it is requested.
 * @param records of the run, in order.
 * @param present the newest record at the beginning: what was decided up to it is left out.
 * @param isEnd whether the run is over after a record.
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
