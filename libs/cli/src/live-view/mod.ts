/** The view of a session at a terminal: its state, its keys and typed lines, and its rows. */
export { carryOut } from './carry-out.ts';
export { type Composer, composerKey, EMPTY_COMPOSER, type Key, remember, textOf } from './composer.ts';
export { finishedRows } from './finished-lines.ts';
export { LiveRegion } from './live-region.ts';
export { LiveView } from './live-view.ts';
export { markdownLines } from './markdown-lines.ts';
export { appendMarkdown, EMPTY_MARKDOWN, type MarkdownBlock, openMarkdown } from './markdown-stream.ts';
export { reduceView } from './reduce-view.ts';
export { readTyped, TYPED_HELP } from './typed-command.ts';
export { drawFrame, type FrameOptions } from './view-frame.ts';
export {
  type FinishedItem,
  initialView,
  NO_DETAILS,
  type RecordDetails,
  type ViewAction,
  type ViewEffect,
} from './view-state.ts';
