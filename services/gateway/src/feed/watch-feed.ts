/**
 * One watcher's way through a session: what it has missed from the journal, then what comes, each record once. The deltas of an answer are
 * dense from its first character on, wherever in the answer the watcher joins.
 */
import type { JournalStart } from '@coxswain/client';
import { AnswerCursor } from '@coxswain/protocol';
import type { JournalPage } from './journal-pages.ts';
import { type FeedItem, feedItem, type SessionFeed } from './session-feed.ts';

/** Where a watcher's events go. */
export interface WatchSink {
  /** Writes one item. Resolves when the next may be written; false where nobody is there any more. */
  write(item: FeedItem): Promise<boolean> | boolean;
}

/** What a watcher asks for. */
export interface WatchRequest {
  /** The first record, by its number, or the newest that there is. */
  readonly from: JournalStart;
  /** Whether it wants pieces of running answers between records. */
  readonly deltas: boolean;
  readonly signal: AbortSignal;
  /** Reads what is no more, or not yet, kept for all: the journal from a record on, so much of it. */
  readonly readPage: (from: number) => Promise<JournalPage>;
}

/**
 * Writes until the signal aborts, the sink is gone, or the feed ends.
 * @throws what ended the feed, and what reading the journal throws.
 */
export async function watchFeed(
  feed: SessionFeed,
  sink: WatchSink,
  { from, deltas, signal, readPage }: WatchRequest,
): Promise<void> {
  let place: number | null = null;
  // Nobody joins a feed that has not found where it stands.
  if (feed.newest === 0) await feed.changed(0, signal);
  // Of one that has failed meanwhile any number will do.
  let next = from === 'newest' ? Math.max(1, feed.newest) : from;
  const answer = new AnswerCursor();
  while (!signal.aborted) {
    place ??= feed.placeOf(next);
    if (place === null) {
      if (feed.ended) return ended(feed);
      const caughtUp = await catchUp();
      if (caughtUp === null) return;
      next = caughtUp;
      continue;
    }
    const item = feed.at(place);
    if (item === undefined) {
      if (feed.ended) return ended(feed);
      if (deltas && !(await writeAnswer())) return;
      await feed.changed(place, signal);
    } else if (item === null) {
      // It was too slow for what is kept, and goes on where it stands.
      place = null;
    } else {
      place++;
      if (item.delta !== null) {
        // Behind a gap nothing is written until the watcher is at the end of the feed, and is given the answer so far.
        const fit = deltas ? answer.take(item.delta) : 'seen';
        if (typeof fit !== 'string' && !(await sink.write(fit === item.delta ? item : feedItem(fit)))) return;
      } else if (item.n !== null && item.n >= next) {
        if (!(await sink.write(item))) return;
        next = item.n + 1;
        if (item.answered !== null) answer.end(item.answered);
      }
    }
  }

  /** Writes what the watcher lacks of the running answer. @returns false where the watcher has left. */
  async function writeAnswer(): Promise<boolean> {
    for (let more = true; more && !signal.aborted; ) {
      const reply = feed.answerAfter(answer.place);
      more = false;
      for (const piece of reply.pieces) {
        const fit = answer.take(piece);
        if (typeof fit === 'string') continue;
        if (!(await sink.write(feedItem(fit)))) return false;
        more = reply.more;
      }
    }
    return true;
  }

  /** Reads the journal until the feed has what comes next. @returns that record's number; null where nobody listens. */
  async function catchUp(): Promise<number | null> {
    let wanted = next;
    for (;;) {
      const { records, more } = await readPage(wanted);
      for (const record of records) {
        if (signal.aborted || !(await sink.write(feedItem(record)))) return null;
        wanted = record.n + 1;
        if (feed.placeOf(wanted) !== null) return wanted;
      }
      if (!more) return wanted;
    }
  }
}

function ended({ failure }: SessionFeed): void {
  if (failure !== null) throw failure;
}
