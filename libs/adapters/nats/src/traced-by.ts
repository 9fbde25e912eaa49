/** Where a request stands in a trace, as a header of its own. */
import { HEADERS } from '@coxswain/protocol';
import { headers, type MsgHdrs } from '@nats-io/nats-core';

/** Options of a publish; none where nobody traces. */
export function tracedBy(traceparent: string | undefined): { readonly headers?: MsgHdrs } {
  if (traceparent === undefined) return {};
  const head = headers();
  head.set(HEADERS.traceparent, traceparent);
  return { headers: head };
}
