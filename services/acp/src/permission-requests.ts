/**
 * Requests human-in-the-loop approval from the editor, once for each call. The answer becomes an approval command to
 * the session. A request that is decided elsewhere is withdrawn.
 *
 * - PERMISSION-1: Every answer of a connected editor decides the call. Anything but an offered option denies it, with
 *   the editor's answer in the reason: an undecided call would block the prompt. A decision that the session cannot
 *   remember applies once. If the answer does not reach the session, the call is requested again.
 * - PERMISSION-2: An editor that disconnects decides nothing. The call waits for another editor, the console or `cox
 *   approve`.
 */
import { type AgentContext, methods, type PermissionOption } from '@agentclientprotocol/sdk';
import { type BodyInput, newCommandId, type Session, type UiEventOf } from '@coxswain/client';
import { cutText } from '@coxswain/protocol';
import { callView } from './call-view.ts';
import { writeDiagnostic } from './diagnostics.ts';
import { asRequestError, hasCode } from './request-errors.ts';

/** A call that waits for approval. */
export interface PendingCall {
  /** The session that made the call: the open one or a descendant of it. */
  readonly sessionId: string;
  readonly event: Pick<UiEventOf<'approval_needed'>, 'callId' | 'tool' | 'args' | 'question' | 'requestedBy'>;
}

const ONCE: readonly PermissionOption[] = [
  { optionId: 'allow_once', name: 'Allow', kind: 'allow_once' },
  { optionId: 'reject_once', name: 'Reject', kind: 'reject_once' },
];
/** A decision can be remembered for a tool call, but not for a question. */
const OPTIONS: readonly PermissionOption[] = [
  { optionId: 'allow_once', name: 'Allow', kind: 'allow_once' },
  { optionId: 'allow_always', name: 'Always allow this in this session', kind: 'allow_always' },
  { optionId: 'reject_once', name: 'Reject', kind: 'reject_once' },
  { optionId: 'reject_always', name: 'Always reject this in this session', kind: 'reject_always' },
];

/** The number of requests for one call, if the answers do not reach the session. */
const REQUESTS_MAX = 3;
/** After these errors another answer is useless: the first one is stored, or this user may not decide. */
const NOT_REPEATED = ['receipt_timeout', 'not_permitted'] as const;

/** The session and the editor of permission requests. */
export interface PermissionRequestsOptions {
  readonly client: AgentContext;
  /** The session that the editor has open. */
  readonly sessionId: string;
  /** The folder that paths are relative to. */
  readonly root: string;
  isConnected(): boolean;
  /** Runs a task on any session, and again if the bus is replaced meanwhile. */
  use<T>(id: string, task: (session: Session) => Promise<T>): Promise<T>;
}

/** The permission requests of one open session and of its child sessions. */
export class PermissionRequests {
  readonly #options: PermissionRequestsOptions;
  readonly #requests = new Map<string, AbortController>();

  constructor(options: PermissionRequestsOptions) {
    this.#options = options;
  }

  /** Sets the pending calls: requests the new ones and withdraws the missing ones. */
  sync(waiting: readonly PendingCall[]): void {
    const keys = new Set(waiting.map(keyOf));
    for (const [key, withdrawing] of [...this.#requests]) {
      if (keys.has(key)) continue;
      this.#requests.delete(key);
      withdrawing.abort();
    }
    for (const call of waiting) {
      const key = keyOf(call);
      if (this.#requests.has(key)) continue;
      const withdrawing = new AbortController();
      this.#requests.set(key, withdrawing);
      void this.#decide(call, withdrawing.signal);
    }
  }

  /** Withdraws all requests. */
  close(): void {
    this.sync([]);
  }

  /** Requests a decision, and again if it does not reach the session. Never rejects. */
  async #decide(call: PendingCall, withdrawn: AbortSignal): Promise<void> {
    const { callId } = call.event;
    for (let requests = 1; ; requests++) {
      try {
        const decision = await this.#ask(call, withdrawn);
        if (decision.reason !== undefined) writeDiagnostic(`${callId} is denied: ${decision.reason}`);
        return await this.#send(call, decision);
      } catch (error) {
        if (withdrawn.aborted || hasCode(error, 'already_decided', 'not_pending', 'call_unknown')) return;
        writeDiagnostic(`${callId} is still undecided: ${asRequestError(error).message}`);
        if (requests >= REQUESTS_MAX || !this.#options.isConnected() || hasCode(error, ...NOT_REPEATED)) return;
      }
    }
  }

  /** Sends a decision. If the session cannot remember it, it is sent again for this call only. */
  async #send({ sessionId, event: { callId } }: PendingCall, decision: PermissionDecision): Promise<void> {
    const approve = (body: PermissionDecision) => {
      const id = newCommandId();
      return this.#options.use(sessionId, (session) =>
        session.wire.send('approve', { call_id: callId, ...body }, { wait: 'accepted', id }),
      );
    };
    try {
      await approve(decision);
    } catch (error) {
      if (!hasCode(error, 'not_rememberable', 'too_many_rules')) throw error;
      const { remember: _remember, ...once } = decision;
      await approve(once);
      const done = decision.decision === 'allow' ? 'allowed' : 'denied';
      writeDiagnostic(`${callId} is ${done}, not remembered: ${asRequestError(error).message}`);
    }
  }

  /** Requests a decision from the editor. @throws if the request was withdrawn or the editor disconnected. */
  async #ask({ sessionId: whose, event }: PendingCall, withdrawn: AbortSignal): Promise<PermissionDecision> {
    const { client, sessionId, root, isConnected } = this.#options;
    const isChild = whose !== sessionId;
    const { callId, tool, args, question, requestedBy } = event;
    const view = callView(tool, args, root);
    const options = question === null ? OPTIONS : ONCE;
    const asking: Promise<unknown> = client.request(
      methods.client.session.requestPermission,
      {
        sessionId,
        toolCall: {
          toolCallId: isChild ? `${whose}/${callId}` : callId,
          status: 'pending',
          ...view,
          ...(question === null ? {} : { title: `${view.title}: ${question}` }),
        },
        options: [...options],
        _meta: { coxswain: { session: whose, call_id: callId, requested_by: requestedBy } },
      },
      { cancellationSignal: withdrawn, stopWaitingOnCancel: true },
    );
    return asking.then(
      (answer) => decisionOf(answer, options),
      (error: unknown) => {
        // The request was withdrawn, or the editor disconnected. Neither is an answer.
        if (withdrawn.aborted || !isConnected()) throw error;
        return denied(`the editor answered the permission request with an error: ${asRequestError(error).message}`);
      },
    );
  }
}

type PermissionDecision = Pick<BodyInput<'approve'>, 'decision' | 'reason' | 'remember'>;

/**
 * Converts an editor's answer into an approval.
 * @param answer the unvalidated result of `session/request_permission`.
 * @param offered the options of the request.
 * @returns a denial with a reason for `cancelled`, for an option that was not offered, and for a malformed answer.
 */
export function decisionOf(answer: unknown, offered: readonly PermissionOption[] = OPTIONS): PermissionDecision {
  const { outcome } = (answer ?? {}) as { readonly outcome?: unknown };
  const { outcome: kind, optionId } = (outcome ?? {}) as { readonly outcome?: unknown; readonly optionId?: unknown };
  if (kind === 'cancelled') return denied('the permission request was cancelled in the editor');
  if (kind !== 'selected') return denied('the editor sent no valid outcome for the permission request');
  const chosen = offered.find((option) => option.optionId === optionId)?.kind;
  if (chosen === undefined) return denied('the editor answered with an option that was not offered');
  const decision = chosen.startsWith('allow') ? 'allow' : 'deny';
  return chosen.endsWith('always') ? { decision, remember: 'session' } : { decision };
}

/** The reason may contain text from the editor, which is untrusted. */
function denied(reason: string): PermissionDecision {
  return { decision: 'deny', reason: cutText(reason.toWellFormed(), REASON_MAX_CHARS) };
}

const REASON_MAX_CHARS = 400;

function keyOf({ sessionId, event }: PendingCall): string {
  return `${sessionId}/${event.callId}`;
}
