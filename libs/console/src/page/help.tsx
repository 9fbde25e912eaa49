/** The keys, and whether they are listened to. */
import type { VNode } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { SHORTCUTS } from './shortcuts.ts';

/** A dialogue above the page; Escape closes it. */
export function Help({
  isOpen,
  onClose,
  keysOn,
  onKeys,
}: {
  readonly isOpen: boolean;
  readonly onClose: () => void;
  readonly keysOn: boolean;
  readonly onKeys: (on: boolean) => void;
}): VNode {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (isOpen && !dialog.current?.open) dialog.current?.showModal();
    if (!isOpen && dialog.current?.open) dialog.current.close();
  }, [isOpen]);
  return (
    <dialog ref={dialog} class="help" aria-labelledby="help-title" onClose={onClose}>
      <h2 id="help-title">Keys</h2>
      <dl>
        {SHORTCUTS.map(({ key, does }) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
        <div>
          <dt>
            <kbd>Enter</kbd>
          </dt>
          <dd>send what is written; Shift Enter begins a line</dd>
        </div>
        <div>
          <dt>
            <kbd>Esc</kbd>
          </dt>
          <dd>leave the text, close this</dd>
        </div>
      </dl>
      <label class="check">
        <input type="checkbox" checked={keysOn} onChange={({ currentTarget }) => onKeys(currentTarget.checked)} />{' '}
        single keys work
      </label>
      <div class="buttons">
        <button type="button" class="primary" onClick={() => dialog.current?.close()}>
          Close
        </button>
      </div>
    </dialog>
  );
}
