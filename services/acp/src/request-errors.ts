/** Converts errors into JSON-RPC errors whose `data.code` is the catalogued code. */
import { RequestError } from '@agentclientprotocol/sdk';
import { errorOnWire } from '@coxswain/client';
import { cutText, type ErrorCode } from '@coxswain/protocol';
import { writeDiagnostic } from './diagnostics.ts';

const INVALID_PARAMS = -32_602;
const INTERNAL = -32_603;
const NOT_FOUND = -32_002;

/** Codes of errors in the request itself. They become "invalid params". */
const CALLERS_OWN: ReadonlySet<string> = new Set<ErrorCode>([
  'usage',
  'invalid_field',
  'unknown_field',
  'invalid_id',
  'invalid_mode',
  'invalid_json',
  'empty_body',
  'body_too_large',
]);

/** The error for an invalid parameter. `message` names the field and the valid values. */
export function invalidParams(message: string, field?: string, code: ErrorCode = 'invalid_field'): RequestError {
  return new RequestError(INVALID_PARAMS, message, { code, ...(field === undefined ? {} : { field }) });
}

/** The error for a session that is not open on this connection, whether or not it exists on the bus. */
export function sessionNotOpen(id: string): RequestError {
  const message = `session_not_found: no session ${JSON.stringify(cutText(id, 64))} is open on this connection`;
  const data = { code: 'session_not_found' satisfies ErrorCode, field: 'sessionId' };
  return new RequestError(NOT_FOUND, `${message}; open an existing session with session/load`, data);
}

/** The error for a state directory that cannot be written. The message keeps the system's code, such as `ENOSPC`. */
export function cannotSave(folder: string, { message }: Error): RequestError {
  return new RequestError(INTERNAL, `cannot save the session in ${folder}: ${message}`, { code: 'internal' });
}

/** Converts any error. The stack of an error without a code is written to standard error only. */
export function asRequestError(given: unknown): RequestError {
  if (given instanceof RequestError) return given;
  const error = errorOnWire(given);
  const { code, message, field, detail } = error as {
    readonly code?: unknown;
    readonly message?: unknown;
    readonly field?: unknown;
    readonly detail?: unknown;
  };
  const text = typeof message === 'string' ? message : String(error);
  if (typeof code !== 'string') {
    writeDiagnostic((error instanceof Error && error.stack) || text);
    return new RequestError(INTERNAL, text, { code: 'internal' });
  }
  const data = { code, ...(typeof field === 'string' ? { field } : {}), ...(detail === undefined ? {} : { detail }) };
  const number = code === 'session_not_found' ? NOT_FOUND : CALLERS_OWN.has(code) ? INVALID_PARAMS : INTERNAL;
  return new RequestError(number, text.startsWith(`${code}: `) ? text : `${code}: ${text}`, data);
}

/** Whether an error has one of these codes. */
export function hasCode(error: unknown, ...codes: readonly ErrorCode[]): boolean {
  const { code } = error as { readonly code?: unknown };
  return typeof code === 'string' && (codes as readonly string[]).includes(code);
}
