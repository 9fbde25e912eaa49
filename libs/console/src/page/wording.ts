/** Formats numbers and times for people. */

/** `$0.0123`; a dash if the price is unknown. */
export function costText(usd: number | null): string {
  if (usd === null) return '–';
  if (usd === 0) return '$0';
  return usd >= 1 ? `$${usd.toFixed(2)}` : `$${usd.toPrecision(2)}`;
}

/** {@link costText}; a dash before the first token is used, because the price may be unknown. */
export function spentText(usd: number | null, tokens: number): string {
  return costText(tokens === 0 ? null : usd);
}

/** `1,234`. */
export function countText(count: number): string {
  return count.toLocaleString('en-US');
}

/** `340 ms`, `12.3 s`, `4 min 5 s`, `2 h 3 min`. */
export function durationText(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${Math.floor(seconds / 3_600)} h ${Math.floor((seconds % 3_600) / 60)} min`;
}

/** The elapsed time: `now`, `5 s`, `3 min`, `2 h`, `4 d`. */
export function agoText(at: string, now: number): string {
  const seconds = Math.max(0, Math.round((now - Date.parse(at)) / 1_000));
  if (Number.isNaN(seconds)) return '';
  if (seconds < 2) return 'now';
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3_600)} h`;
  return `${Math.floor(seconds / 86_400)} d`;
}

/** The time of day, with seconds. */
export function clockText(at: string): string {
  const time = new Date(at);
  return Number.isNaN(time.getTime()) ? '' : time.toLocaleTimeString('en-GB');
}

/** An amount of a budget: tokens, USD or milliseconds, depending on the budget. */
export function budgetText(budget: string, amount: number): string {
  if (budget === 'usd') return costText(amount);
  return budget === 'wall_time_ms' ? durationText(amount) : countText(amount);
}

/** Shortens a long id to its end: ids from about the same time have the same start. */
export function shortId(id: string): string {
  return id.length > 14 ? `…${id.slice(-12)}` : id;
}
