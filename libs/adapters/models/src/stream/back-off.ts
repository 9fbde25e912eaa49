/** The delay before a request is repeated. */
import { type BackOff, delayAfter } from '@coxswain/protocol';

/** The maximum number of requests for one answer, the first included. */
export const ATTEMPTS_MAX = 4;
/** The maximum delay, even if a provider requests more. */
export const WAIT_MAX_MS = 60_000;

const WAITS: BackOff = { firstMs: 500, maxMs: WAIT_MAX_MS };

/**
 * The delay in milliseconds after a failed attempt (from 1). The provider's requested delay takes precedence. Otherwise
 * the delay grows exponentially, with a spread between half and the whole of it. The spread derives from `key`, so that
 * it differs between requests and is the same for a repetition.
 */
export function waitMs(attempt: number, key: string, retryAfterMs: number | null): number {
  if (retryAfterMs !== null) return Math.min(retryAfterMs, WAIT_MAX_MS);
  const whole = delayAfter(attempt, WAITS);
  return Math.round(whole * (0.5 + 0.5 * spread(`${key}#${attempt}`)));
}

/**
 * The requested delay of `retry-after-ms` or `retry-after` (seconds or an HTTP date) in milliseconds; null without one.
 * A date is relative to the answer's own `date`, which has the same clock; without that, to `nowMs`.
 */
export function retryAfterMs(headers: Headers, nowMs: number): number | null {
  const exact = headers.get('retry-after-ms');
  if (exact !== null && /^\d+(\.\d+)?$/.test(exact.trim())) return Math.ceil(Number(exact));
  const asked = headers.get('retry-after')?.trim();
  if (!asked) return null;
  if (/^\d+(\.\d+)?$/.test(asked)) return Math.ceil(Number(asked) * 1_000);
  const date = Date.parse(asked);
  if (Number.isNaN(date)) return null;
  const sentMs = Date.parse(headers.get('date') ?? '');
  return Math.max(0, date - (Number.isNaN(sentMs) ? nowMs : sentMs));
}

// FNV-1a, as a fraction of its range. https://datatracker.ietf.org/doc/html/draft-eastlake-fnv
function spread(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return (hash >>> 0) / 2 ** 32;
}
