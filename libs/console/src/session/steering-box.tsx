/** Sends a message to a session: a steer, a reminder or a follow-up during a run, a prompt after its end. */
import { INJECTION_VERBS, type InjectionVerb } from '@coxswain/protocol';
import type { VNode } from 'preact';
import { useId, useState } from 'preact/hooks';
import type { SessionHandle } from '../browser-client.ts';
import type { RunAction } from '../page/outcome.tsx';
import { SameCommand } from '../page/same-command.ts';

const KIND_NAMES: Readonly<Record<InjectionVerb, string>> = { steer: 'Steer', remind: 'Remind', followup: 'Follow up' };

const MODES = {
  finish_step: 'after this step',
  interrupt_immediate: 'before the next call',
  preempt: 'at once: ends running calls',
  audit_only: 'for the record only',
} as const;
type When = keyof typeof MODES;

/** The id of the text field, for shortcuts. */
export const STEERING_BOX = 'steering-text';

/** The unsent text. It outlives the box, which is hidden while the past is shown. */
export interface Draft {
  readonly text: string;
  readonly setText: (next: string | ((now: string) => string)) => void;
  /** The last message without a known outcome. */
  readonly same: SameCommand;
}

/** The draft of a page with a steering box. */
export function useDraft(): Draft {
  const [text, setText] = useState('');
  const [same] = useState(() => new SameCommand());
  return { text, setText, same };
}

/** A form with a text field and the options of the message. */
export function SteeringBox({
  session,
  hasEnded,
  draft: { text, setText, same },
  runAction,
}: {
  readonly session: SessionHandle;
  readonly hasEnded: boolean;
  readonly draft: Draft;
  readonly runAction: RunAction;
}): VNode {
  const [kind, setKind] = useState<InjectionVerb>('steer');
  const [when, setWhen] = useState<When>('finish_step');
  const [busy, setBusy] = useState(false);
  const id = useId();
  const submit = async () => {
    if (text.trim() === '' || busy) return;
    setBusy(true);
    // Text that was typed meanwhile belongs to the next message.
    if (await send(session, hasEnded ? 'prompt' : kind, text, when, same, runAction))
      setText((now) => (now === text ? '' : now));
    setBusy(false);
  };
  return (
    <form
      class="steering"
      aria-label={hasEnded ? 'Next prompt' : 'Steering'}
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      <label class="visually-hidden" for={STEERING_BOX}>
        {hasEnded ? 'Prompt of the next run' : 'Message to the session'}
      </label>
      <textarea
        id={STEERING_BOX}
        rows={2}
        value={text}
        placeholder={
          hasEnded ? 'The run has ended. A prompt starts the next one.' : 'Send a message into the running session.'
        }
        aria-keyshortcuts="s"
        onInput={({ currentTarget }) => setText(currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === 'Escape') event.currentTarget.blur();
          // With an input method, Enter accepts its suggestion.
          if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
          event.preventDefault();
          void submit();
        }}
      />
      <div class="steering-how">
        {!hasEnded && (
          <>
            <label class="visually-hidden" for={`${id}-kind`}>
              Kind
            </label>
            <select
              id={`${id}-kind`}
              value={kind}
              onChange={({ currentTarget }) => setKind(currentTarget.value as InjectionVerb)}
            >
              {INJECTION_VERBS.map((one) => (
                <option key={one} value={one}>
                  {KIND_NAMES[one]}
                </option>
              ))}
            </select>
            {kind !== 'followup' && (
              <>
                <label class="visually-hidden" for={`${id}-when`}>
                  When
                </label>
                <select
                  id={`${id}-when`}
                  value={when}
                  onChange={({ currentTarget }) => setWhen(currentTarget.value as When)}
                >
                  {Object.entries(MODES).map(([mode, words]) => (
                    <option key={mode} value={mode}>
                      {words}
                    </option>
                  ))}
                </select>
              </>
            )}
          </>
        )}
        <button type="submit" class="primary" disabled={busy || text.trim() === ''}>
          {hasEnded ? 'Prompt' : KIND_NAMES[kind]}
        </button>
      </div>
    </form>
  );
}

function send(
  session: SessionHandle,
  kind: InjectionVerb | 'prompt',
  text: string,
  when: When,
  same: SameCommand,
  runAction: RunAction,
): Promise<boolean> {
  const timed = when === 'preempt' ? { preempt: true as const } : { mode: when };
  const sent = (
    outcome: string,
    sending: (options: { readonly wait: 'accepted'; readonly id: string }) => Promise<unknown>,
  ) =>
    runAction(outcome, () =>
      same.send(JSON.stringify([kind, when, text]), ({ id }) => sending({ wait: 'accepted', id })),
    );
  switch (kind) {
    case 'prompt':
      return sent('prompt accepted', (options) => session.prompt(text, options));
    case 'followup':
      return sent('follow-up accepted: it waits for the end of the run', (options) => session.followup(text, options));
    case 'remind':
      return sent('reminder accepted', (options) => session.remind(text, { ...options, ...timed }));
    case 'steer':
      return sent('steer accepted', (options) => session.steer(text, { ...options, ...timed }));
  }
}
