/** Converts receipts to errors. */
import type { Receipt, SessionRef } from '@coxswain/protocol';
import {
  CommandBlockedError,
  CommandRejectedError,
  CommandRevokedError,
  SessionNotFoundError,
} from './client-errors.ts';

/** The error of a receipt for the caller that waits for its command; null for a successful command. */
export function failureOfReceipt(receipt: Receipt, ref: SessionRef): Error | null {
  switch (receipt.stage) {
    case 'rejected':
      return receipt.code === 'session_not_found'
        ? new SessionNotFoundError(ref.sessionId)
        : new CommandRejectedError(receipt.code ?? 'rejected', receipt.message ?? receipt.code ?? 'rejected', {
            field: receipt.field,
            commandId: receipt.command_id,
            detail: receipt.detail,
          });
    case 'blocked':
      return new CommandBlockedError(receipt.command_id, receipt.reason);
    case 'revoked':
      return new CommandRevokedError(receipt.command_id, receipt.reason);
    case 'accepted':
    case 'delivered':
      return null;
  }
}
