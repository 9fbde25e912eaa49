/**
 * Sends a session to one watcher: missed records from the journal, then live items, each record once. The deltas of an
 * answer are dense from its first character on, also if the watcher joins in the middle.
 */
import type { JournalStart } from '@coxswain/client';
import { AnswerCursor } from '@coxswain/protocol';
import { GATEWAY_BOUNDS } from '../context/mod.ts';
import type { HeldPage, PageReader } from './journal-pages.ts';
import { FeedItem, type SessionFeed } from './session-feed.ts';

/** The output of a watcher. */
export interface WatchSink {
  /** Writes one item. Resolves when the next may be written; false if the client has disconnected or does not read. */
  write(item: FeedItem): Promise<boolean> | boolean;
}

/** The request of a watcher. */
export interface WatchRequest {
  /** Number of the first record, or `newest`. */
  readonly from: JournalStart;
  /** Whether the watcher gets pieces of running answers between records. */
  readonly deltas: boolean;
  readonly signal: AbortSignal;
  /** Reads a page of the journal from a record on. It is used for records that the feed does not hold. */
  readonly readPage: PageReader;
}

/**
 * Writes items until the signal aborts, the sink is closed, or the feed ends.
 * @throws the error that ended the feed; errors of reading the journal.
 */
export async function watchFeed(
  feed: SessionFeed,
  sink: WatchSink,
  { from, deltas, signal, readPage }: WatchRequest,
): Promise<void> {
  let place: number | null = null;
  // Wait until the feed has read its first record.
  if (feed.newest === 0) await feed.waitForItem(0, signal);
  // If the feed has failed in the meantime, the number does not matter.
  let next = from === 'newest' ? Math.max(1, feed.newest) : from;
  const answer = new AnswerCursor();
  while (!signal.aborted) {
    place ??= feed.placeOf(next);
    if (place === null) {
      if (feed.ended) return throwFailure(feed);
      const caughtUp = await catchUp();
      if (caughtUp === null) return;
      next = caughtUp;
      continue;
    }
    const item = feed.at(place);
    if (item === undefined) {
      if (feed.ended) return throwFailure(feed);
      if (deltas && !(await writeAnswer())) return;
      await feed.waitForItem(place, signal);
    } else if (item === null) {
      // The watcher was too slow for the kept items. It continues from the journal.
      place = null;
    } else {
      place++;
      if (item.delta !== null) {
        // After a gap, write no delta until the watcher is at the end of the feed and gets the answer so far.
        const fit = deltas ? answer.take(item.delta) : 'seen';
        if (typeof fit !== 'string' && !(await sink.write(fit === item.delta ? item : new FeedItem(fit)))) return;
      } else if (item.n !== null && item.n >= next) {
        if (!(await sink.write(item))) return;
        next = item.n + 1;
        if (item.answered !== null) answer.end(item.answered);
      }
    }
  }

  /**
   * Writes the pieces of the running answer that the watcher lacks.
   * @returns false if the watcher has left.
   */
  async function writeAnswer(): Promise<boolean> {
    for (let more = true; more && !signal.aborted; ) {
      const reply = feed.answerAfter(answer.place);
      more = false;
      for (const piece of reply.pieces) {
        const fit = answer.take(piece);
        if (typeof fit === 'string') continue;
        if (!(await sink.write(new FeedItem(fit)))) return false;
        more = reply.more;
      }
    }
    return true;
  }

  /**
   * Sends records of the journal until the feed holds the next one, or the journal ends.
   * @returns the number of the next record; null if the watcher has left.
   */
  async function catchUp(): Promise<number | null> {
    let wanted = next;
    for (;;) {
      let page: HeldPage;
      try {
        page = await readPage(wanted, signal);
      } catch (error) {
        if (signal.aborted) return null;
        throw error;
      }
      try {
        const untilMs = performance.now() + GATEWAY_BOUNDS.catchUpWithinMs;
        let isWhole = true;
        for (const item of page.records) {
          if (signal.aborted || !(await sink.write(item))) return null;
          wanted++;
          if (feed.placeOf(wanted) !== null) return wanted;
          // A slow watcher makes room for others.
          isWhole = performance.now() < untilMs;
          if (!isWhole) break;
        }
        if (isWhole && !page.more) return wanted;
      } finally {
        page.release();
      }
    }
  }
}

function throwFailure({ failure }: SessionFeed): void {
  if (failure !== null) throw failure;
}
