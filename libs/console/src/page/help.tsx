/** The keyboard shortcuts, and the setting that enables them. */
import type { VNode } from 'preact';
import { Modal } from './modal.tsx';
import { SHORTCUTS } from './shortcuts.ts';

/** The dialog; {@link Modal} says when it is open. */
export function Help({
  onClose,
  keysOn,
  onKeys,
}: {
  readonly onClose: () => void;
  readonly keysOn: boolean;
  readonly onKeys: (on: boolean) => void;
}): VNode {
  return (
    <Modal class="help" labelledBy="help-title" onClose={onClose}>
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
          <dd>send the text; Shift Enter starts a new line</dd>
        </div>
        <div>
          <dt>
            <kbd>Esc</kbd>
          </dt>
          <dd>leave the text field, close a dialog</dd>
        </div>
      </dl>
      <label class="check">
        <input type="checkbox" checked={keysOn} onChange={({ currentTarget }) => onKeys(currentTarget.checked)} />{' '}
        enable single-key shortcuts
      </label>
      <div class="buttons">
        <button type="button" class="primary" onClick={onClose}>
          Close
        </button>
      </div>
    </Modal>
  );
}
