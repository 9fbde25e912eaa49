/** Expectations of events: what a test says of a journal, held against it, and told with both where it does not hold. */
import type { EventType, SessionEvent } from '@coxswain/protocol';
import { EVENT_SCHEMAS, EVENT_TYPES } from '@coxswain/protocol';
import { journalLine } from './journal-line.ts';
import { meantBy } from './known-keys.ts';
import { shapeDifference, shown } from './match-shape.ts';
import { ExpectationError, SceneError } from './testing-errors.ts';

/** One event, with the record that holds it; of a call every event has the name of its tool. */
export type JournalEvent = SessionEvent & { readonly n: number; readonly tool?: string | undefined };

/**
 * A pattern for one event: its type, or its type and some of its members. See {@link shapeDifference} for the patterns
 * of members.
 */
export type EventPattern = EventType | ({ readonly type: EventType } & Readonly<Record<string, unknown>>);

/**
 * Holds that these events happened in this order; others may lie between them.
 * @throws ExpectationError naming the first that did not, the nearest that did, and the journal.
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

/** Holds that no event is like one of these. @throws ExpectationError naming the event that is. */
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

/** The line of an event as failures show it. */
export function lineOf(event: JournalEvent): string {
  const line = journalLine(event);
  return event.tool === undefined || line.includes(event.tool) ? line : `${line} (${event.tool})`;
}

/** A journal as failures show it, its end where it is long. */
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

/** A seam that delivers nothing is passed several times a turn, and says nothing to a person. */
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

// What is misspelt would never be found, and of what must not happen that would be a test that cannot fail.
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

/** Holds that there are events of this type. @throws SceneError with what may have been meant. */
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
