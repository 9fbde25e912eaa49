/** Runs functions when the gateway starts to stop. */
import type { GatewayContext } from './gateway-context.ts';

/**
 * Calls `tell` when the gateway starts to stop, or immediately if it stops already. A request that was accepted before
 * the stop may arrive here late.
 * @returns a function that removes the listener.
 */
export function whenStopping({ stopping }: Pick<GatewayContext, 'stopping'>, tell: () => void): () => void {
  if (stopping.aborted) tell();
  else stopping.addEventListener('abort', tell, { once: true });
  return () => stopping.removeEventListener('abort', tell);
}
