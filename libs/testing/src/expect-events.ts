/** Expectations of events. The message of a failure has the expected events and the journal. */
import type { EventType, SessionEvent } from '@coxswain/protocol';
import { EVENT_SCHEMAS, EVENT_TYPES } from '@coxswain/protocol';
import { journalLine } from './journal-line.ts';
import { meantBy } from './known-keys.ts';
import { shapeDifference, shown } from './match-shape.ts';
import { ExpectationError, SceneError } from './testing-errors.ts';

/** One event, and the number of its record. Events of a call have the name of its tool. */
export type JournalEvent = SessionEvent & { readonly n: number; readonly tool?: string | undefined };

/**
 * A pattern for one event: its type, or its type and some of its members. See {@link shapeDifference} for the patterns
 * of members.
 */
export type EventPattern = EventType | ({ readonly type: EventType } & Readonly<Record<string, unknown>>);

/**
 * Asserts that these events happened in this order. Other events may come between them.
 * @throws ExpectationError naming the first missing event, the most similar one, and the journal.
 */
export function expectInOrder(events: readonly JournalEvent[], patterns: readonly EventPattern[]): void {
  checkPatterns(patterns);
  let from = 0;
  for (const [index, pattern] of patterns.entries()) {
    const at = events.findIndex((event, place) => place >= from && differenceOf(pattern, event) === null);
    if (at >= 0) {
      from = at + 1;
      continue;
    }
    const told = patterns.map((one, place) => `  ${place < index ? '✓' : place === index ? '✗' : ' '} ${named(one)}`);
    const message = [
      `expected these events, in this order (other events may come between them):`,
      ...told,
      whyMissing(pattern, events, from),
      ...journalText(events),
    ].join('\n');
    throw new ExpectationError(message, patterns, events.filter((event) => !isIdleSeam(event)).map(lineOf));
  }
}

/** Asserts that no event matches one of these patterns. @throws ExpectationError naming the event that does. */
export function expectNone(events: readonly JournalEvent[], patterns: readonly EventPattern[]): void {
  checkPatterns(patterns);
  for (const pattern of patterns) {
    const found = events.find((event) => differenceOf(pattern, event) === null);
    if (!found) continue;
    const message = [
      `expected no ${named(pattern)}, and record ${found.n} holds one:`,
      `  ${lineOf(found)}`,
      ...journalText(events),
    ].join('\n');
    throw new ExpectationError(message, [], [lineOf(found)]);
  }
}

/** The line of an event in the messages of failures. */
export function lineOf(event: JournalEvent): string {
  const line = journalLine(event);
  return event.tool === undefined || line.includes(event.tool) ? line : `${line} (${event.tool})`;
}

/** A journal in the messages of failures: the newest events, if it is long. */
export function journalText(events: readonly JournalEvent[]): string[] {
  if (events.length === 0) return ['the journal holds no event'];
  const shownEvents = events.filter((event) => !isIdleSeam(event));
  const left = shownEvents.slice(-LINES_MAX);
  const before = shownEvents.length - left.length;
  return [
    'the journal:',
    ...(before > 0 ? [`  … ${before} before`] : []),
    ...left.map((event) => `  ${String(event.n).padStart(3)}  ${lineOf(event)}`),
  ];
}

const LINES_MAX = 80;

/**
 * Whether the event is a seam without a delivery. There are several in a turn, and they carry no information for a
 * reader.
 */
export function isIdleSeam(event: JournalEvent): boolean {
  return event.type === 'loop_checkpoint' && event.delivered === 0 && event.inbox_delivered === 0;
}

function differenceOf(pattern: EventPattern, event: JournalEvent) {
  return shapeDifference(typeof pattern === 'string' ? { type: pattern } : pattern, event);
}

function named(pattern: EventPattern): string {
  if (typeof pattern === 'string') return pattern;
  const { type, ...rest } = pattern;
  return Object.keys(rest).length === 0 ? type : `${type} ${shown(rest)}`;
}

function whyMissing(pattern: EventPattern, events: readonly JournalEvent[], from: number): string {
  const type = typeof pattern === 'string' ? pattern : pattern.type;
  const same = events.map((event, place) => ({ event, place })).filter(({ event }) => event.type === type);
  const after = same.filter(({ place }) => place >= from);
  const earlier = same.find(({ event, place }) => place < from && differenceOf(pattern, event) === null);
  if (earlier)
    return `there is none at this position; an earlier one is in record ${earlier.event.n}: ${lineOf(earlier.event)}`;
  const [nearest] = after;
  if (!nearest) return `there is no ${type}${same.length > 0 ? ' after that' : ''}`;
  const { path, why } = differenceOf(pattern, nearest.event) ?? { path: '', why: '' };
  return `the nearest is in record ${nearest.event.n}: ${lineOf(nearest.event)}; its ${path}: ${why}`;
}

// A misspelt event or member would match no event, so that `expectNone` could never fail.
function checkPatterns(patterns: readonly EventPattern[]): void {
  for (const pattern of patterns) {
    const { type, ...members } = typeof pattern === 'object' && pattern !== null ? pattern : { type: pattern };
    checkEventType(type);
    const known = membersOf(type);
    const unknown = Object.keys(members).find((key) => !known.includes(key));
    if (unknown === undefined) continue;
    throw new SceneError(`${type} has no "${unknown}"${meantBy(unknown, known)} It has: ${known.join(', ')}`);
  }
}

/** Checks the name of an event type. @throws SceneError with a similar name. */
export function checkEventType(type: unknown): asserts type is EventType {
  if ((EVENT_TYPES as readonly unknown[]).includes(type)) return;
  throw new SceneError(
    `unknown event ${shown(type)}${typeof type === 'string' ? meantBy(type, EVENT_TYPES) : ':'} See docs/reference/subjects.md for all events.`,
  );
}

function membersOf(type: EventType): readonly string[] {
  const members = Object.keys(EVENT_SCHEMAS[type].shape).filter((key) => key !== 'type');
  const more = members.includes('call_id') ? ['tool', 'n'] : ['n'];
  return [...new Set([...members, ...more])];
}
