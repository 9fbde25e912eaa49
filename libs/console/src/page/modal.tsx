/** A modal dialog that the page's state opens and closes. */
import type { ComponentChildren, VNode } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';

/**
 * A modal dialog. It is open for as long as it is rendered: mounting opens it before the next key press, and unmounting closes it and
 * gives the focus back.
 *
 * Browsers dispatch `close` with a later animation frame than the one in which the dialog closes. By then the page can have opened
 * another dialog. Escape therefore closes through `cancel`, which comes first, and the `close` event of a removed dialog has no effect.
 * @param labelledBy id of the heading that names the dialog.
 * @param onClose must remove the dialog. Escape calls it; buttons that close the dialog call it, too.
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
    // Removal alone would not give the focus back.
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
