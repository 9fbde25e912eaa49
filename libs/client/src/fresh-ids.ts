/** Generates ids of commands and sessions. */
import { CommandId, SessionId } from '@coxswain/protocol';
import { InvalidOptionError } from './client-errors.ts';

/**
 * Generates a command id: a UUIDv7 (RFC 9562 section 5.7). Its time lets a session recognize an id that is too old to
 * remember.
 */
export function newCommandId(nowMs = Date.now()): CommandId {
  const bytes = randomBytes(16);
  // The time has 48 bits, and shifts of JavaScript have 32.
  for (let at = 5, left = nowMs; at >= 0; at--, left = Math.floor(left / 256)) bytes[at] = left % 256;
  bytes[6] = 0x70 | ((bytes[6] as number) & 0x0f);
  bytes[8] = 0x80 | ((bytes[8] as number) & 0x3f);
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
  return CommandId.parse(
    `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`,
  );
}

const POOL_BYTES = 1_024;
let pool = new Uint8Array(0);

/** Random bytes of Web Crypto, which browsers also have. They are fetched in bulk, because each request is slow. */
function randomBytes(count: number): Uint8Array {
  if (pool.length < count) pool = crypto.getRandomValues(new Uint8Array(POOL_BYTES));
  const bytes = pool.subarray(0, count);
  pool = pool.subarray(count);
  return bytes;
}

// Without easily confused letters and digits, and without vowels, so that ids contain no words.
const ALPHABET = '23456789bcdfghjkmnpqrstvwxz';
const SESSION_ID_LENGTH = 12;

/**
 * Generates a session id with 57 random bits and no time, so that a few characters distinguish two sessions on a
 * command line. If two ids collide, the second start is rejected (`session_busy`, `session_exists`).
 */
export function newSessionId(): SessionId {
  let id = '';
  while (id.length < SESSION_ID_LENGTH) {
    for (const byte of randomBytes(SESSION_ID_LENGTH)) {
      // Bytes at or above the largest multiple would favour the first letters.
      if (byte < ALPHABET.length * 9 && id.length < SESSION_ID_LENGTH) id += ALPHABET[byte % ALPHABET.length];
    }
  }
  return SessionId.parse(id);
}

const MESSAGE_SESSION_ID_LENGTH = 32;

/**
 * The id of a session that a start with a message id and without a session id creates. Every program derives the same
 * id: the SHA-256 hash of the message id in base64url (RFC 4648 section 5), cut to 192 bits. Session ids belong to a
 * tenant, so two tenants may use the same message id.
 * @throws InvalidOptionError if the platform has no Web Crypto, such as a page over plain HTTP from another machine.
 */
export async function sessionIdOfMessage(messageId: string): Promise<SessionId> {
  const subtle = (globalThis.crypto as Partial<typeof globalThis.crypto>).subtle;
  if (subtle === undefined) {
    const message =
      'a message_id without a session id needs Web Crypto, so a page over https or from localhost: give a sessionId';
    throw new InvalidOptionError(message, 'sessionId');
  }
  const digest = new Uint8Array(await subtle.digest('SHA-256', new TextEncoder().encode(messageId)));
  const text = btoa(String.fromCharCode(...digest))
    .replaceAll('+', '-')
    .replaceAll('/', '_');
  return SessionId.parse(text.slice(0, MESSAGE_SESSION_ID_LENGTH));
}
