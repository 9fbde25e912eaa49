/**
 * Asks the editor about the calls that wait for a person: each is asked once, answered as an approval of the session, and
 * taken back when it was decided elsewhere.
 */
import {
  type AgentContext,
  methods,
  type PermissionOption,
  type RequestPermissionOutcome,
} from '@agentclientprotocol/sdk';
import { newCommandId, type Session, type UiEventOf } from '@coxswain/client';
import { callView } from './call-view.ts';
import { asRequestError, hasCode, invalidParams } from './request-errors.ts';

/** A call that waits, with what it is about. */
export interface Asked {
  /** Whose call it is: the session's, or one below it. */
  readonly sessionId: string;
  readonly event: Pick<UiEventOf<'approval_needed'>, 'call_id' | 'tool' | 'args' | 'question' | 'requested_by'>;
}

const ONCE: readonly PermissionOption[] = [
  { optionId: 'allow_once', name: 'Allow', kind: 'allow_once' },
  { optionId: 'reject_once', name: 'Reject', kind: 'reject_once' },
];
/** A decision may be remembered only where it is about calls of a kind. */
const OPTIONS: readonly PermissionOption[] = [
  { optionId: 'allow_once', name: 'Allow', kind: 'allow_once' },
  { optionId: 'allow_always', name: 'Always allow this in this session', kind: 'allow_always' },
  { optionId: 'reject_once', name: 'Reject', kind: 'reject_once' },
  { optionId: 'reject_always', name: 'Always reject this in this session', kind: 'reject_always' },
];

/** Whose permissions are asked for. */
export interface PermissionsOf {
  readonly client: AgentContext;
  /** The session that the editor has open. */
  readonly sessionId: string;
  /** The folder that paths are relative to. */
  readonly root: string;
  /** Runs a task on any session, and again where the bus is another meanwhile. */
  use<T>(id: string, task: (session: Session) => Promise<T>): Promise<T>;
}

/** Those of one session that an editor has open, and of the sessions below it. */
export class PermissionRequests {
  readonly #of: PermissionsOf;
  readonly #asked = new Map<string, AbortController>();

  constructor(of: PermissionsOf) {
    this.#of = of;
  }

  /** These wait now: what is new among them is asked, what is missing is taken back. */
  sync(waiting: readonly Asked[]): void {
    const keys = new Set(waiting.map(keyOf));
    for (const [key, taking] of [...this.#asked]) {
      if (keys.has(key)) continue;
      this.#asked.delete(key);
      taking.abort();
    }
    for (const asked of waiting) {
      const key = keyOf(asked);
      if (this.#asked.has(key)) continue;
      const taking = new AbortController();
      this.#asked.set(key, taking);
      void this.#ask(asked, taking.signal).catch((error: unknown) => {
        if (taking.signal.aborted || hasCode(error, 'already_decided', 'not_pending', 'call_unknown')) return;
        // Whoever else watches the session can decide it.
        const { message } = asRequestError(error);
        process.stderr.write(`cox acp: the editor has decided nothing about ${asked.event.call_id}: ${message}\n`);
      });
    }
  }

  /** Takes all of them back. */
  close(): void {
    this.sync([]);
  }

  async #ask({ sessionId: whose, event }: Asked, taken: AbortSignal): Promise<void> {
    const { client, sessionId, root, use } = this.#of;
    const isChild = whose !== sessionId;
    const { call_id, tool, args, question, requested_by } = event;
    const view = callView(tool, args, root);
    const answer: unknown = await client.request(
      methods.client.session.requestPermission,
      {
        sessionId,
        toolCall: {
          toolCallId: isChild ? `${whose}/${call_id}` : call_id,
          status: 'pending',
          ...view,
          ...(question === null ? {} : { title: `${view.title}: ${question}` }),
        },
        options: [...(question === null ? OPTIONS : ONCE)],
        _meta: { coxswain: { session: whose, call_id, requested_by } },
      },
      { cancellationSignal: taken, stopWaitingOnCancel: true },
    );
    const outcome = outcomeOf(answer);
    const id = newCommandId();
    await use(whose, (session) => decide(session, call_id, outcome, id));
  }
}

/** An editor may say anything. @throws RequestError for what is no answer: it decides nothing. */
function outcomeOf(answer: unknown): RequestPermissionOutcome {
  const { outcome } = (answer ?? {}) as { readonly outcome?: RequestPermissionOutcome | null };
  if (outcome?.outcome === 'cancelled' || outcome?.outcome === 'selected') return outcome;
  throw invalidParams('outcome: cancelled or selected is needed', 'outcome');
}

/** Cancelled decides nothing: the call waits on, for whoever else is asked. */
async function decide(session: Session, callId: string, outcome: RequestPermissionOutcome, id: string): Promise<void> {
  if (outcome.outcome === 'cancelled') return;
  const chosen = OPTIONS.find(({ optionId }) => optionId === outcome.optionId)?.kind;
  if (chosen === undefined) {
    const reason = 'the editor has chosen what was not offered';
    await session.approve({ callId, decision: 'deny', reason }, { wait: 'accepted', id });
    return;
  }
  const decision = chosen.startsWith('allow') ? 'allow' : 'deny';
  const remember = chosen.endsWith('always') ? 'session' : undefined;
  await session.approve({ callId, decision, remember }, { wait: 'accepted', id });
}

function keyOf({ sessionId, event }: Asked): string {
  return `${sessionId}/${event.call_id}`;
}
