/** Confirms a fork, and asks for its changes. */
import { type JournalRecord, ModelName } from '@coxswain/protocol';
import type { VNode } from 'preact';
import { useId, useState } from 'preact/hooks';
import type { ForkOptions } from '../browser-client.ts';
import { Modal } from '../page/modal.tsx';
import { forkChanges, forkPromptOf } from './fork-changes.ts';

/** The dialog; {@link Modal} says when it is open. */
export function ForkDialog({
  n,
  record,
  model,
  models,
  onFork,
  onClose,
}: {
  /** The record at which the fork starts. */
  readonly n: number;
  /** That record; undefined if it has not arrived. */
  readonly record: JournalRecord | undefined;
  /** The model of the session; null before its first run. */
  readonly model: string | null;
  /** Models to choose from. */
  readonly models: readonly string[];
  /** Forks the session. Resolves with the reason of a rejection, or with null. */
  readonly onFork: (changes: ForkOptions['changes']) => Promise<string | null>;
  readonly onClose: () => void;
}): VNode {
  const prompt = forkPromptOf(record);
  const before = prompt.kind === 'none' ? '' : prompt.text;
  const [text, setText] = useState(before);
  const [named, setNamed] = useState(model ?? '');
  // State of this dialog only: a late response must not change the next dialog.
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  const id = useId();
  const isEmptied = prompt.kind === 'message' && text.trim() === '';
  const isModel = named.trim() === '' || ModelName.safeParse(named.trim()).success;
  const fork = async () => {
    if (busy || isEmptied || !isModel) return;
    setBusy(true);
    setProblem(null);
    setProblem(await onFork(forkChanges(prompt, { prompt: text, model: named }, model)));
    setBusy(false);
  };
  return (
    <Modal class="help fork" labelledBy={`${id}-title`} onClose={onClose}>
      <form
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          void fork();
        }}
        onKeyDown={(event) => {
          if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return;
          event.preventDefault();
          void fork();
        }}
      >
        <h2 id={`${id}-title`}>Fork at record {n}</h2>
        <p class="faint">
          A new session starts with the history of this one up to record {n}. This session stays unchanged.
        </p>
        {prompt.kind === 'none' ? (
          <p class="faint">Record {n} has no message, so its prompt cannot be changed.</p>
        ) : (
          <div class="field">
            <label for={`${id}-prompt`}>
              {prompt.kind === 'message' ? 'Prompt' : 'Next prompt'}{' '}
              <span class="faint">{prompt.kind === 'message' ? `of record ${n}` : 'optional'}</span>
            </label>
            <textarea
              id={`${id}-prompt`}
              rows={4}
              value={text}
              aria-invalid={isEmptied}
              aria-describedby={`${id}-prompt-problem`}
              onInput={({ currentTarget }) => setText(currentTarget.value)}
            />
            <p class="field-problem" id={`${id}-prompt-problem`} role="alert">
              {isEmptied && 'Prompt: enter the task of the fork.'}
            </p>
          </div>
        )}
        <div class="field">
          <label for={`${id}-model`}>
            Model <span class="faint">provider/name</span>
          </label>
          <input
            id={`${id}-model`}
            type="text"
            value={named}
            list={`${id}-models`}
            autocomplete="off"
            spellcheck={false}
            aria-invalid={!isModel}
            aria-describedby={`${id}-model-problem`}
            onInput={({ currentTarget }) => setNamed(currentTarget.value)}
          />
          <datalist id={`${id}-models`}>
            {models.map((one) => (
              <option key={one} value={one} />
            ))}
          </datalist>
          <p class="field-problem" id={`${id}-model-problem`} role="alert">
            {!isModel && 'Model: write provider/name, for example anthropic/claude-sonnet-4-5.'}
          </p>
        </div>
        {problem !== null && (
          <p class="notice error" role="alert">
            {problem}
          </p>
        )}
        <div class="buttons">
          <button type="submit" class="primary" disabled={busy || isEmptied || !isModel}>
            Fork
          </button>
          <button type="button" onClick={onClose}>
            Close
          </button>
          <span class="faint">Ctrl Enter</span>
        </div>
      </form>
    </Modal>
  );
}
