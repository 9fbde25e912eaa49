/** What is told when the gateway is about to end. */
import type { GatewayContext } from './gateway-context.ts';

/**
 * Has `tell` called when the gateway is about to end: at once where it is already, as of a request that was let in before and has
 * waited for the bus meanwhile.
 * @returns what calls that off.
 */
export function whenStopping({ stopping }: Pick<GatewayContext, 'stopping'>, tell: () => void): () => void {
  if (stopping.aborted) tell();
  else stopping.addEventListener('abort', tell, { once: true });
  return () => stopping.removeEventListener('abort', tell);
}
