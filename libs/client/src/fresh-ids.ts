/** Ids that clients make: of commands, and of sessions whose starter does not choose one. */
import { CommandId, SessionId } from '@coxswain/protocol';
import { InvalidOptionError } from './client-errors.ts';

/** A new command id: a UUIDv7 (RFC 9562 section 5.7), so that a session can tell an id that is too old to remember. */
export function newCommandId(nowMs = Date.now()): CommandId {
  const bytes = randomBytes(16);
  // Forty-eight bits, which no shift of JavaScript's takes.
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

/** Of the platform's own source of chance, which browsers have too. Asked for many at once: asking is what costs. */
function randomBytes(count: number): Uint8Array {
  if (pool.length < count) pool = crypto.getRandomValues(new Uint8Array(POOL_BYTES));
  const bytes = pool.subarray(0, count);
  pool = pool.subarray(count);
  return bytes;
}

// Without letters and digits that are read for one another, and without vowels, so that no word comes out.
const ALPHABET = '23456789bcdfghjkmnpqrstvwxz';
const SESSION_ID_LENGTH = 12;

/**
 * A new session id: 57 random bits, no time in it, so that a few characters tell two sessions apart on a command line.
 * Should two ever meet, the second start is refused (`session_busy`, `session_exists`).
 */
export function newSessionId(): SessionId {
  let id = '';
  while (id.length < SESSION_ID_LENGTH) {
    for (const byte of randomBytes(SESSION_ID_LENGTH)) {
      // Bytes at and above the largest multiple would favour the first letters.
      if (byte < ALPHABET.length * 9 && id.length < SESSION_ID_LENGTH) id += ALPHABET[byte % ALPHABET.length];
    }
  }
  return SessionId.parse(id);
}

const MESSAGE_SESSION_ID_LENGTH = 32;

/**
 * The session that a start under a message id makes where it names none: the same for the same message id, in every program. It is
 * the SHA-256 of the message id in base64url (RFC 4648 section 5), cut to 192 bits. Sessions are kept by tenant, so two tenants may use one message id.
 * @throws InvalidOptionError where the platform has no Web Crypto, as a page has none that came over plain HTTP from another machine.
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
