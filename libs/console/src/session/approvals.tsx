/** Pending approvals: allow, deny, or allow with edited arguments. */
import type { JsonObject } from '@coxswain/protocol';
import type { VNode } from 'preact';
import { useId, useState } from 'preact/hooks';
import { printableJson, type SessionHandle } from '../browser-client.ts';
import type { RunAction } from '../page/outcome.tsx';
import { agoText } from '../page/wording.ts';
import type { OpenApproval } from '../view/entries.ts';
import { readArguments } from './read-arguments.ts';

/** All pending approvals, in the order of their requests. */
export function Approvals({
  approvals,
  session,
  runAction,
  now,
}: {
  readonly approvals: readonly OpenApproval[];
  /** Null if the past is shown, or the token has no scope for approvals. */
  readonly session: SessionHandle | null;
  readonly runAction: RunAction;
  readonly now: number;
}): VNode | null {
  if (approvals.length === 0) return null;
  return (
    <section class="panel approvals" aria-label="Waiting for you">
      <h2>
        Waiting for you <span class="count">{approvals.length}</span>
      </h2>
      {approvals.map((approval) => (
        <Approval key={approval.callId} approval={approval} session={session} runAction={runAction} now={now} />
      ))}
    </section>
  );
}

function Approval({
  approval,
  session,
  runAction,
  now,
}: {
  readonly approval: OpenApproval;
  readonly session: SessionHandle | null;
  readonly runAction: RunAction;
  readonly now: number;
}) {
  const { callId, tool, args, requestedBy, question, at } = approval;
  const [edited, setEdited] = useState<string | null>(null);
  const [reason, setReason] = useState('');
  const [remember, setRemember] = useState(false);
  const [busy, setBusy] = useState(false);
  const id = useId();
  const read = edited === null ? null : readArguments(edited);
  const problem = read !== null && 'problem' in read ? read.problem : null;
  const decide = async (decision: 'allow' | 'deny') => {
    if (!session || busy) return;
    const given: JsonObject | undefined =
      decision === 'allow' && read !== null && 'args' in read ? read.args : undefined;
    setBusy(true);
    const how = {
      reason: reason.trim() === '' ? undefined : reason.trim(),
      remember: remember ? ('session' as const) : undefined,
      wait: 'accepted' as const,
    };
    await runAction(
      `${tool} ${decision === 'allow' ? 'allowed' : 'denied'}${given ? ' with edited arguments' : ''}`,
      () => (decision === 'allow' ? session.approve(callId, { ...how, args: given }) : session.deny(callId, how)),
    );
    setBusy(false);
  };
  return (
    <form
      class="approval"
      id={`approval-${callId}`}
      aria-label={`Approval of ${tool}`}
      // Enter in a field would submit the form with its first button, and allow a call that the user is about to deny.
      onSubmit={(event) => event.preventDefault()}
    >
      <p>
        <code class="tool">{tool}</code>{' '}
        <span class="faint">
          {requestedBy} · {agoText(at, now)}
        </span>
      </p>
      {question !== null && <p>{question}</p>}
      {edited === null ? (
        <pre class="plain">{printableJson(args)}</pre>
      ) : (
        <>
          <label for={`${id}-args`}>Arguments, as JSON</label>
          <textarea
            id={`${id}-args`}
            class="code"
            rows={Math.min(14, edited.split('\n').length + 1)}
            value={edited}
            spellcheck={false}
            aria-invalid={problem !== null}
            aria-describedby={`${id}-problem`}
            onInput={({ currentTarget }) => setEdited(currentTarget.value)}
          />
          <p id={`${id}-problem`} class="field-problem" role="status">
            {problem ?? ''}
          </p>
        </>
      )}
      {session && (
        <>
          <div class="buttons">
            <button
              type="button"
              class="primary"
              disabled={busy || problem !== null}
              onClick={() => void decide('allow')}
            >
              {edited === null ? 'Allow' : 'Allow as edited'}
            </button>
            <button type="button" class="danger" disabled={busy} onClick={() => void decide('deny')}>
              Deny
            </button>
            <button type="button" onClick={() => setEdited(edited === null ? printableJson(args ?? {}) : null)}>
              {edited === null ? 'Edit arguments' : 'Keep the original arguments'}
            </button>
          </div>
          <details>
            <summary>with a reason, or for later calls</summary>
            <label for={`${id}-reason`}>Reason (the model gets the reason of a denial)</label>
            <input
              id={`${id}-reason`}
              type="text"
              value={reason}
              maxLength={1_000}
              onInput={({ currentTarget }) => setReason(currentTarget.value)}
            />
            <label class="check">
              <input
                type="checkbox"
                checked={remember}
                onChange={({ currentTarget }) => setRemember(currentTarget.checked)}
              />{' '}
              remember the decision for similar calls of this session
            </label>
          </details>
        </>
      )}
    </form>
  );
}
