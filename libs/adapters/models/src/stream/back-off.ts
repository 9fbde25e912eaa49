/** How long to wait before a request is sent again. */
import { type BackOff, delayAfter } from '@coxswain/protocol';

/** Requests for one answer, the first included. */
export const ATTEMPTS_MAX = 4;
/** The longest wait, also where a provider asks for more. */
export const WAIT_MAX_MS = 60_000;

const WAITS: BackOff = { firstMs: 500, maxMs: WAIT_MAX_MS };

/**
 * Milliseconds to wait after a failed attempt (from 1): what the provider asks for, else exponentially more, spread
 * between half and the whole of it. The spread comes from `key`: other for each request, the same for a repetition.
 */
export function waitMs(attempt: number, key: string, retryAfterMs: number | null): number {
  if (retryAfterMs !== null) return Math.min(retryAfterMs, WAIT_MAX_MS);
  const whole = delayAfter(attempt, WAITS);
  return Math.round(whole * (0.5 + 0.5 * spread(`${key}#${attempt}`)));
}

/**
 * What `retry-after-ms` or `retry-after` (seconds or an HTTP date) ask for in milliseconds from now; null if nothing.
 * A date counts from the answer's own `date`, which the same clock made; from `nowMs` where there is none.
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
