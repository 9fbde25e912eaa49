import { randomUUID } from 'node:crypto';
import { type SessionRef, sessionRef } from '@coxswain/protocol';

/** A session that no other test has used: engines are shared by the tests of a file. */
export function freshSession(tenant = 'default'): SessionRef {
  return sessionRef(`s-${randomUUID()}`, tenant);
}

/** UTF-8 bytes. */
export function bytes(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

/** The text of UTF-8 bytes. */
export function text(data: Uint8Array): string {
  return new TextDecoder().decode(data);
}
