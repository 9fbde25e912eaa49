/** Feeds of sessions for many watchers, and pages of journals. */
export { type EventStream, openEventStream } from './event-stream.ts';
export { expectStart } from './expect-start.ts';
export { createPageReader, type HeldPage, JournalPages } from './journal-pages.ts';
export { PageRoom, PageRooms } from './page-room.ts';
export { serveEvents } from './serve-events.ts';
export { FeedItem, SessionFeed } from './session-feed.ts';
export { FEED_BOUNDS, type FeedBounds, SessionFeeds } from './session-feeds.ts';
export { watchFeed } from './watch-feed.ts';
export { findAccessProblem } from './watched-access.ts';
