/** The list of pending approvals of all sessions. */
import { type ApprovalPlace, cursorOf, partsOfCursor } from '@coxswain/client';
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
        description: 'A page ends before its limit when its approvals reach 4 MiB.',
        tags: ['sessions'],
        querystring: Query,
        response: { 200: ApprovalsPage, ...PROBLEMS },
      },
    },
    async (request, reply) => {
      const { limit, cursor } = request.query;
      const after = cursor === undefined ? null : placeOf(cursor);
      const principal = principalOf(request);
      const client = clientFor(context, principal);
      const read = () => client.wire.pageOfApprovals({ after, limit, maxBytes: GATEWAY_BOUNDS.pageApprovalsMaxBytes });
      const { approvals, more } = await context.expensiveReads.run(principal, read, abortOnDisconnect(reply));
      const last = approvals.at(-1);
      return {
        approvals: [...approvals],
        next_cursor: more && last ? cursorOf([last.since, last.session_id, last.call_id]) : null,
      };
    },
  );
}

function placeOf(cursor: string): ApprovalPlace {
  const [since, session_id, call_id] = partsOfCursor(cursor, 3);
  return { since, session_id, call_id } as ApprovalPlace;
}
