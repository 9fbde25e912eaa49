/** Transcripts of sessions as resources, in Markdown. */
import { type Client, createEventTranslator, topState, type UiEvent } from '@coxswain/client';
import { SessionId } from '@coxswain/protocol';
import type { ReadResourceResult, Resource, ResourceTemplate } from '@modelcontextprotocol/sdk/types.js';
import { MCP_SERVER_BOUNDS } from './mcp-server-bounds.ts';
import { shortenText } from './shorten-text.ts';
import { existingSession } from './tools/existing-session.ts';

const { transcriptMaxChars, transcriptTextMaxChars, sessionsMax } = MCP_SERVER_BOUNDS;
const PREFIX = 'coxswain://sessions/';
const mimeType = 'text/markdown';

/** The URI template of transcripts. */
export const TRANSCRIPT_TEMPLATE: ResourceTemplate = {
  uriTemplate: `${PREFIX}{session_id}`,
  name: 'transcript',
  title: 'Transcript of a session',
  description: 'Messages, answers, tool calls and results of a session. A long transcript contains the newest part.',
  mimeType,
};

/** The transcripts of the newest sessions, in pages. */
export async function listTranscripts(
  client: Client,
  cursor: string | undefined,
): Promise<{ resources: Resource[]; nextCursor?: string }> {
  const page = await client.wire.listSessions({ limit: sessionsMax, cursor, details: true });
  const resources = page.sessions.map(({ session_id, state, stop_reason, at, details }): Resource => {
    const how = stop_reason ?? topState(state);
    return {
      uri: `${PREFIX}${session_id}`,
      name: session_id,
      title: `${details?.persona ?? 'assistant'}: ${how}`,
      description: `Session ${session_id}, ${how}, last changed ${at}`,
      mimeType,
      annotations: { lastModified: at },
    };
  });
  return { resources, ...(page.next_cursor === null ? {} : { nextCursor: page.next_cursor }) };
}

/** The session of a URI; null for a URI of another kind. */
export function sessionOfUri(uri: string): string | null {
  const id = uri.startsWith(PREFIX) ? uri.slice(PREFIX.length) : '';
  return SessionId.safeParse(id).success ? id : null;
}

/**
 * The transcript of a session.
 * @throws SessionNotFoundError, SessionDeletedError.
 */
export async function readTranscript(client: Client, id: string): Promise<ReadResourceResult> {
  const { session, newest } = await existingSession(client, id);
  const translator = createEventTranslator();
  let lines: string[] = [];
  let chars = 0;
  let leftOut = false;
  for await (const { record } of session.journal()) {
    if (record.n > newest.n) break;
    for (const event of translator.record(record)) {
      const line = lineOf(event);
      if (line === null) continue;
      lines.push(line);
      chars += line.length;
    }
    // Keep the newest part. Drop older lines in batches, because each drop copies the rest.
    if (chars <= transcriptMaxChars * 2) continue;
    lines = newestOf(lines);
    chars = lines.reduce((sum, line) => sum + line.length, 0);
    leftOut = true;
  }
  const kept = newestOf(lines);
  const head = `# Session ${id}\n\nAt record ${newest.n}, ${topState(newest.state)}.`;
  const cut = leftOut || kept.length < lines.length ? ['(Earlier events are omitted: see read_events.)'] : [];
  return { contents: [{ uri: `${PREFIX}${id}`, mimeType, text: [head, ...cut, ...kept].join('\n\n') }] };
}

/** The newest lines that fit into the limit. */
function newestOf(lines: readonly string[]): string[] {
  let room = transcriptMaxChars;
  let from = lines.length;
  while (from > 0 && room >= (lines[from - 1] as string).length) {
    from -= 1;
    room -= (lines[from] as string).length;
  }
  return lines.slice(from);
}

/** Formats an event of the conversation; null for other events. */
function lineOf(event: UiEvent): string | null {
  const cut = (text: string) => shortenText(text, transcriptTextMaxChars);
  switch (event.type) {
    case 'prompt_shown':
      return `## User${event.actor === null ? '' : ` (${event.actor})`}\n\n${cut(event.text)}`;
    case 'text_appended':
      return `## Assistant\n\n${cut(event.text)}`;
    case 'seam_delivered':
      if (event.injections.length === 0) return null;
      return event.injections
        .map(({ origin, text }) => `## ${origin} (delivered at ${event.seam})\n\n${cut(text)}`)
        .join('\n\n');
    case 'call_started':
      return `- called ${event.tool} ${cut(event.summary)}`;
    case 'call_ended':
      return `- ${event.tool}: ${event.status}${event.result === '' ? '' : `: ${cut(event.result)}`}`;
    case 'approval_needed':
      return `- ${event.tool} ${cut(event.summary)} waits for an approval (call ${event.callId})`;
    case 'approval_settled':
      return `- approval of call ${event.callId}: ${event.decision}${event.by === null ? '' : ` by ${event.by}`}`;
    case 'child_started':
      return `- session ${event.session} of ${event.persona} works for call ${event.callId} (${PREFIX}${event.session})`;
    case 'run_ended': {
      const why = event.error === null ? (event.reason ?? '') : `${event.error.code}: ${event.error.message}`;
      return `---\n\nRun ${event.run} ended: ${event.stopReason}${why === '' ? '' : ` (${cut(why)})`}`;
    }
    default:
      return null;
  }
}
