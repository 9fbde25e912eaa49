/** The list of pending approvals of all sessions. */
import { type ApprovalPlace, cursorOf, longestPendingFirst, partsOfCursor } from '@coxswain/client';
import { SessionStatus } from '@coxswain/protocol';
import * as z from 'zod';
import type { App } from '../app/mod.ts';
import { abortOnDisconnect, clientFor, GATEWAY_BOUNDS, type GatewayContext, principalOf } from '../context/mod.ts';
import { PROBLEMS, wholeNumber } from '../http/mod.ts';
import { Cursor } from './list-schemas.ts';

const Query = z.strictObject({
  limit: wholeNumber(GATEWAY_BOUNDS.pageApprovalsMax).default(GATEWAY_BOUNDS.pageApprovalsDefault),
  cursor: Cursor,
});

const Approval = SessionStatus.shape.approvals.element.extend({
  session_id: z.string(),
  persona: z.string().nullable(),
});
const ApprovalsPage = z.strictObject({
  approvals: z.array(Approval),
  next_cursor: z.string().nullable().meta({ description: 'Cursor of the next page; null on the last page.' }),
});

/** Adds the route. */
export function approvalRoutes(app: App, context: GatewayContext): void {
  app.get(
    '/v1/approvals',
    {
      config: { scope: 'read' },
      schema: {
        operationId: 'listApprovals',
        summary: 'Lists the pending approvals of all sessions, the oldest first.',
        tags: ['sessions'],
        querystring: Query,
        response: { 200: ApprovalsPage, ...PROBLEMS },
      },
    },
    async (request, reply) => {
      const { limit, cursor } = request.query;
      const after = cursor === undefined ? null : placeOf(cursor);
      const client = clientFor(context, principalOf(request));
      const all = await context.expensiveReads.run(() => client.wire.approvals(), abortOnDisconnect(reply));
      const rest = after === null ? all : all.filter((one) => longestPendingFirst(one, after) > 0);
      const approvals = rest.slice(0, limit);
      const last = approvals.at(-1);
      const more = last !== undefined && rest.length > limit;
      return { approvals, next_cursor: more ? cursorOf([last.since, last.session_id, last.call_id]) : null };
    },
  );
}

function placeOf(cursor: string): ApprovalPlace {
  const [since, session_id, call_id] = partsOfCursor(cursor, 3);
  return { since, session_id, call_id } as ApprovalPlace;
}
