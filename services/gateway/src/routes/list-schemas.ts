/** Schemas of session lists. */
import { SESSIONS_PAGE } from '@coxswain/client';
import { ID_PATTERN, ListedSessionDocument } from '@coxswain/protocol';
import { turnChart } from '@coxswain/session';
import * as z from 'zod';
import { wholeNumber } from '../http/mod.ts';

/** The start of a page. */
export const Cursor = z.string().max(2_048).optional().meta({ description: '`next_cursor` of the previous page.' });

/** Valid values of `state`. An unknown state is rejected, because an empty list would suggest that no session runs. */
const STATES = [...turnChart().root.states.map(({ path }) => path), 'deleted', 'unreadable'] as const;

/** The query of a list request. */
export const ListQuery = z.strictObject({
  state: z.enum(STATES).optional().meta({
    description: 'Only sessions in this top-level state. Deleted sessions are listed with `deleted` only.',
  }),
  persona: z
    .string()
    .regex(ID_PATTERN, { error: 'must be a persona’s name' })
    .optional()
    .meta({ description: 'Only sessions of this persona. A page may then be short although more pages follow.' }),
  details: z
    .enum(['true', 'false'])
    .default('false')
    .meta({ description: 'Adds details from hosts: persona, model, cost, open approvals.' }),
  limit: wholeNumber(SESSIONS_PAGE.sessionsMax).default(SESSIONS_PAGE.sessionsDefault),
  cursor: Cursor.meta({
    description:
      '`next_cursor` of the previous page. All pages together show each session that exists during all of them. The last ones may repeat sessions that changed.',
  }),
});
export type ListQuery = z.infer<typeof ListQuery>;

/** A page of sessions. */
export const SessionsPage = z.strictObject({
  sessions: z.array(ListedSessionDocument),
  next_cursor: z.string().nullable().meta({ description: 'Cursor of the next page; null on the last page.' }),
});
