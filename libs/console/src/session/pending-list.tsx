/** The queued messages: each can be revoked or replaced. */
import type { InjectionVerb } from '@coxswain/protocol';
import type { VNode } from 'preact';
import { useId, useState } from 'preact/hooks';
import type { SessionHandle } from '../browser-client.ts';
import type { RunAction } from '../page/outcome.tsx';
import { agoText } from '../page/wording.ts';
import type { PendingInjection } from '../view/entries.ts';

const KINDS: Readonly<Record<InjectionVerb, string>> = { steer: 'steer', remind: 'reminder', followup: 'follow-up' };
const WHEN = {
  interrupt_immediate: 'before the next call',
  finish_step: 'after this step',
  audit_only: 'at the end, for the record only',
} as const;

/** The list, in the order of delivery. */
export function PendingList({
  pending,
  session,
  runAction,
  now,
}: {
  readonly pending: readonly PendingInjection[];
  /** Null if the past is shown, or the token has no scope for it. */
  readonly session: SessionHandle | null;
  readonly runAction: RunAction;
  readonly now: number;
}): VNode | null {
  if (pending.length === 0) return null;
  return (
    <section class="panel pending" aria-label="Pending">
      <h2>
        Pending <span class="count">{pending.length}</span>
      </h2>
      <ol>
        {pending.map((one) => (
          <PendingRow key={one.commandId} one={one} session={session} runAction={runAction} now={now} />
        ))}
      </ol>
    </section>
  );
}

function PendingRow({
  one,
  session,
  runAction,
  now,
}: {
  readonly one: PendingInjection;
  readonly session: SessionHandle | null;
  readonly runAction: RunAction;
  readonly now: number;
}) {
  const [edited, setEdited] = useState<string | null>(null);
  const id = useId();
  const replace = async () => {
    if (!session || edited === null || edited.trim() === '') return;
    if (await runAction('replaced', () => session.replace(one.commandId, edited, { wait: 'accepted' })))
      setEdited(null);
  };
  return (
    <li data-command={one.commandId}>
      <p class="faint">
        {KINDS[one.kind]} · {one.mode === null ? 'when the run would end' : WHEN[one.mode]}
        {one.actor !== null && ` · ${one.actor}`} · {agoText(one.at, now)}
      </p>
      {edited === null ? (
        <p class="said">{one.text}</p>
      ) : (
        <>
          <label class="visually-hidden" for={id}>
            New text
          </label>
          <textarea id={id} rows={3} value={edited} onInput={({ currentTarget }) => setEdited(currentTarget.value)} />
        </>
      )}
      {session && (
        <div class="buttons">
          {edited === null ? (
            <>
              <button type="button" class="small" onClick={() => setEdited(one.text)}>
                Replace
              </button>
              <button
                type="button"
                class="small danger"
                onClick={() => void runAction('revoked', () => session.revoke(one.commandId, { wait: 'accepted' }))}
              >
                Revoke
              </button>
            </>
          ) : (
            <>
              <button
                type="button"
                class="small primary"
                disabled={edited.trim() === ''}
                onClick={() => void replace()}
              >
                Replace
              </button>
              <button type="button" class="small" onClick={() => setEdited(null)}>
                Discard edit
              </button>
            </>
          )}
        </div>
      )}
    </li>
  );
}
