/** A span for each command over a WebSocket, like the span of an HTTP request. */
import { formatTraceparent, type TraceContext, type Verb } from '@coxswain/protocol';
import { type GatewayContext, problemFrom } from '../context/mod.ts';
import { createChildPlace } from '../http/mod.ts';

/**
 * Sends a command within its own span. Rethrows the errors of `send`.
 * @param parent the span that the command names; otherwise the parent span of the WebSocket's request.
 */
export async function tracedCommand<T>(
  { spans = null, now }: Pick<GatewayContext, 'spans' | 'now'>,
  { sessionId, verb }: { readonly sessionId: string; readonly verb: Verb },
  parent: TraceContext | null,
  send: (traceparent: string | undefined) => Promise<T>,
): Promise<T> {
  const place = createChildPlace(parent, spans, now());
  if (!place) return send(undefined);
  const end = (code: string, fault: string | null) =>
    spans?.take({
      ...place,
      name: `command ${verb}`,
      kind: 'server',
      endMs: Math.max(place.startMs, now()),
      error: fault === null ? null : { type: code, message: fault },
      attributes: {
        'gen_ai.conversation.id': sessionId,
        'network.protocol.name': 'websocket',
        'coxswain.verb': verb,
        'coxswain.status': code,
      },
      moments: [],
      links: [],
    });
  try {
    const sent = await send(formatTraceparent(place.context));
    end('sent', null);
    return sent;
  } catch (error) {
    const { document, status } = problemFrom(error);
    end(document.code, status >= 500 ? document.detail : null);
    throw error;
  }
}
