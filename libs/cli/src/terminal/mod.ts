/** Output for people: streams, views, tables and colours. */
export { askYes } from './ask-yes.ts';
export { columnsOf, headWithinColumns } from './columns.ts';
export { counted } from './counted.ts';
export {
  budgetLine,
  childLine,
  dollars,
  duration,
  eventLine,
  firstLine,
  personaWaitText,
  spent,
  tokens,
  waitsFor,
} from './event-lines.ts';
export { pendingTable, pendingText } from './pending-rows.ts';
export { jsonView, plainView, type SessionView } from './session-view.ts';
export { streamView } from './stream-view.ts';
export { chooseView, isInteractive, standardInput, standardStreams } from './streams.ts';
export { createStyle, type Style, wantsColour } from './style.ts';
export { ago, table } from './table.ts';
export { usageTable } from './usage-table.ts';
export { durationText, type SpanTree, spanTrees, waterfall } from './waterfall.ts';
export { graphemesOf, wrapStyled } from './wrap.ts';
