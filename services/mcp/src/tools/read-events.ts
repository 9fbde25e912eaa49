import { createEventTranslator, topState, type UiEvent, uiEventToWire } from '@coxswain/client';
import type { JournalRecord } from '@coxswain/protocol';
import * as z from 'zod';
import { MCP_SERVER_BOUNDS } from '../mcp-server-bounds.ts';
import { mcpTool } from '../mcp-tool.ts';
import { cutTexts } from '../shorten-text.ts';
import { existingSession } from './existing-session.ts';
import { OfSession } from './tool-inputs.ts';

const { eventsMax, eventsDefault, eventsMaxBytes, eventTextMaxChars } = MCP_SERVER_BOUNDS;
/** Omitted types: the page contains the state, and only hosts need changes of the host. */
const LEFT_OUT: ReadonlySet<UiEvent['type']> = new Set(['state_changed', 'host_changed']);

const Page = z.strictObject({
  session_id: z.string(),
  events: z.array(z.looseObject({ type: z.string() })).describe('Events in order; n is the record of each.'),
  state: z.string().describe('The state after the last record of this page.'),
  next_from: z.number().int().describe('First record of the next page.'),
  more: z.boolean().describe('Whether the journal has more records at the moment.'),
});

/** The tool `read_events`: the events of a session in pages, in readable form. */
export const readEvents = mcpTool({
  name: 'read_events',
  title: 'Read events',
  description:
    'Return events of a session from a position: prompts, answers, tool calls and results, steering messages and their ' +
    'delivery, approvals, ends of runs. Pass next_from of a page as from of the next. Long texts are truncated.',
  scope: 'read',
  input: z.strictObject({
    ...OfSession,
    from: z.number().int().min(1).default(1).describe('Number of the first record.'),
    limit: z
      .number()
      .int()
      .min(1)
      .max(eventsMax)
      .default(eventsDefault)
      .describe('Approximate maximum of events; records stay whole.'),
  }),
  output: Page,
  run: async ({ session_id, from, limit }, { client }) => {
    const { session, newest } = await existingSession(client, session_id);
    const translator = createEventTranslator();
    const events: { readonly type: string }[] = [];
    let bytes = 0;
    let last: JournalRecord = newest;
    let nextFrom = Math.min(from, newest.n + 1);
    for await (const { record } of session.journal({ from: nextFrom })) {
      const shown = translator.record(record).filter(({ type }) => !LEFT_OUT.has(type));
      const cut = shown.map((event) => cutTexts(uiEventToWire(event), eventTextMaxChars) as { readonly type: string });
      const size = Buffer.byteLength(JSON.stringify(cut));
      const isFull = events.length + cut.length > limit || bytes + size > eventsMaxBytes;
      if (isFull && events.length > 0) break;
      events.push(...(size > eventsMaxBytes ? withoutArguments(cut) : cut));
      bytes += size;
      last = record;
      nextFrom = record.n + 1;
    }
    return { session_id, events, state: topState(last.state), next_from: nextFrom, more: nextFrom <= newest.n };
  },
});

/** Shortens the events of a record that exceeds the size of a page. */
function withoutArguments(events: readonly { readonly type: string }[]): { readonly type: string }[] {
  const short = events.map((event) => ({
    ...(cutTexts(event, 200) as { readonly type: string }),
    ...('args' in event ? { args: null } : {}),
  }));
  return short;
}
