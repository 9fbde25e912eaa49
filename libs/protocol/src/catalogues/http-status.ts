/**
 * The HTTP status of each code.
 */
import { type ErrorCode, errorKindOf } from './error-codes.ts';

/** Codes by status. All others: the defaults of {@link httpStatusOf}. */
const CODES: Readonly<Record<number, readonly ErrorCode[]>> = {
  400: [
    'invalid_json',
    'invalid_utf8',
    'invalid_unicode',
    'invalid_id',
    'unknown_field',
    'invalid_field',
    'invalid_mode',
    'empty_body',
    'receipt_subject_refused',
    'unknown_hook_point',
    'invalid_pattern',
    'invalid_arguments',
    'request_unreadable',
    'secret_in_request',
  ],
  401: ['unauthorized'],
  403: [
    'not_permitted',
    'not_allowed_by_policy',
    'scope_missing',
    'host_not_allowed',
    'origin_not_allowed',
    'internal_subject',
  ],
  404: [
    'route_not_found',
    'session_not_found',
    'record_not_there',
    'unknown_command',
    'unknown_command_id',
    'call_unknown',
    'not_found',
    'job_unknown',
    'fork_origin_not_found',
    'fork_record_not_found',
  ],
  405: ['method_not_allowed'],
  408: ['request_too_slow'],
  409: [
    'session_exists',
    'session_busy',
    'session_being_copied',
    'command_too_old',
    'command_id_taken',
    'not_pending',
    'call_not_open',
    'stale_epoch',
    'already_decided',
    'edit_pending',
    'not_running',
    'already_cancelled',
    'not_suspended',
    'already_suspended',
    'already_delivered',
    'already_revoked',
    'revoked',
    'persona_paused',
    'persona_not_paused',
    'idempotency_key_undecided',
  ],
  410: ['session_deleted'],
  413: ['body_too_large'],
  415: ['unsupported_media_type'],
  417: ['expectation_failed'],
  422: [
    'edited_call_denied',
    'not_rememberable',
    'fork_too_long',
    'fork_change_misfit',
    'command_id_reused',
    'message_id_reused',
    'idempotency_key_reused',
    'prompt_blocked',
    'persona_not_found',
    'rejected',
  ],
  426: ['upgrade_required'],
  431: ['headers_too_large'],
  429: [
    'rate_limited',
    'too_many_watchers',
    'too_many_rules',
    'too_many_reminders',
    'too_many_signals',
    'too_many_pending',
    'pending_full',
    'quota_exceeded',
  ],
  // For logs and metrics only: the client has closed the connection. 499 is the convention of proxies.
  499: ['request_closed'],
  501: ['not_yet_available'],
  502: ['answer_unreadable'],
  503: [
    'no_host',
    'bus_not_prepared',
    'command_not_stored',
    'journal_unavailable',
    'nats_unreachable',
    'streams_missing',
    'streams_gone',
    'gateway_stopping',
    'gateway_busy',
    'too_many_queries',
    'auth_unavailable',
  ],
  504: ['receipt_timeout', 'timeout'],
};

const STATUS: ReadonlyMap<string, number> = new Map(
  Object.entries(CODES).flatMap(([status, codes]) => codes.map((code) => [code, Number(status)] as const)),
);

/**
 * The HTTP status of a code: that of the table, which has every rejection and refusal. Otherwise 500 for an exception,
 * and 422 for an outcome or an unknown code (a rejection of a newer host).
 */
export function httpStatusOf(code: string): number {
  const status = STATUS.get(code);
  if (status !== undefined) return status;
  return errorKindOf(code) === 'exception' ? 500 : 422;
}

/** Whether the table has the code. */
export function hasHttpStatus(code: ErrorCode): boolean {
  return STATUS.has(code);
}
