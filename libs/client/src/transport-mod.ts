/**
 * Building blocks for packages with their own implementation of `Transport`, the checks of `run()` for packages that
 * wrap it, and the pending approvals of a tree of sessions for packages that show them. Programs that use sessions import
 * `@coxswain/client` instead.
 */
export { awaitCancellation } from './await-cancellation.ts';
export { CallGuard } from './call-guard.ts';
export { ChildApprovals, type ChildJournal, type ChildSession, type FollowTree } from './child-approvals.ts';
export { Closing } from './closing.ts';
export { checkedPayload } from './command-form.ts';
export { expectStart, recordNotThere } from './expect-start.ts';
export { JournalReceipt } from './journal-receipt.ts';
export type { PlacedSession } from './newest-sessions.ts';
export { isPending, type OpenApproval, OpenApprovals } from './open-approvals.ts';
export { checkRunArguments } from './option-checks.ts';
export { checkedCommandId, RECEIPT_TIMEOUT_MS } from './outgoing-command.ts';
export { checkedResult } from './output-schema.ts';
export { pageOf } from './page-of-sessions.ts';
export { outputSchemaOf } from './persona-handlers.ts';
export { storedRecords } from './read-journal.ts';
export { failureOfReceipt } from './receipt-failure.ts';
export { listingFrom } from './session-listing.ts';
export { type WatchedSession, watchRecords } from './watch-session.ts';
