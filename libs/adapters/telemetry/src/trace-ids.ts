/** Ids of spans that follow from nothing: requests, and work that is served. */
import { randomBytes } from 'node:crypto';

/** 16 hexadecimal digits. */
export function newSpanId(): string {
  return randomBytes(8).toString('hex');
}

/** 32 hexadecimal digits. */
export function newTraceId(): string {
  return randomBytes(16).toString('hex');
}
