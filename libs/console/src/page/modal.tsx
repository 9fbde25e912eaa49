/** A modal dialog that the state of the page opens and closes. */
import type { ComponentChildren, VNode } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';

/**
 * A modal dialog. It is open as long as it is rendered: mounting opens it before the next key press, and unmounting
 * closes it and restores the focus.
 *
 * Browsers dispatch `close` in a later animation frame than the one in which the dialog closes. By then the page may
 * have opened another dialog. Escape therefore closes through `cancel`, which comes first, and the `close` event of a
 * removed dialog has no effect.
 * @param labelledBy The id of the heading that names the dialog.
 * @param onClose Must remove the dialog. Escape and the closing buttons call it.
 */
export function Modal({
  labelledBy,
  class: classes,
  onClose,
  children,
}: {
  readonly labelledBy: string;
  readonly class: string;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}): VNode {
  const dialog = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    const shown = dialog.current;
    shown?.showModal();
    // Removal alone would not restore the focus.
    return () => shown?.close();
  }, []);
  return (
    <dialog
      ref={dialog}
      class={classes}
      aria-labelledby={labelledBy}
      onCancel={onClose}
      onClose={({ currentTarget }) => {
        if (currentTarget.isConnected) onClose();
      }}
    >
      {children}
    </dialog>
  );
}
