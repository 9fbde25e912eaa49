/** The view of a session in a pipe, for watching: every answer is streamed to stdout, everything else to stderr. */
import { printable, type UiEvent } from '@coxswain/client';
import { childLines, eventLine } from './event-lines.ts';
import type { SessionView, Streams } from './session-view.ts';
import type { Style } from './style.ts';

/** Creates the view. An answer ends with a line break. An answer that starts again starts on a new line. */
export function streamView(streams: Streams, style: Style): SessionView {
  let isInLine = false;
  const endLine = () => {
    if (isInLine) streams.out('\n');
    isInLine = false;
  };
  const show = (events: readonly UiEvent[]) => {
    for (const event of events) {
      if (event.type === 'text_appended' && event.text !== '') {
        streams.out(event.text);
        isInLine = !event.text.endsWith('\n');
      } else if (event.type === 'answer_ended' || event.type === 'answer_restarted') endLine();
      const line = eventLine(event, style);
      if (line !== null) streams.err(`${line}\n`);
    }
  };
  return {
    record: (_record, events) => show(events),
    live: show,
    child: (_record, events, child) => {
      for (const line of childLines(events, child, style)) streams.err(`${line}\n`);
    },
    notice: (text) => streams.err(`${printable(text)}\n`),
    close: endLine,
  };
}
