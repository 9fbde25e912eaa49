/** Prints an audit trail, each event once. */
import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';

/** A line of the trail: its id, when it was written, and the payload of the hook point. */
export type TrailLine = { readonly id: string; readonly at: string; readonly event: string } & Record<string, unknown>;

/** The lines of a trail, the first of each id. An incomplete line of a crash is skipped: its hook was asked again. */
export async function* readTrail(file: string): AsyncGenerator<TrailLine> {
  const seen = new Set<string>();
  for await (const text of createInterface({ input: createReadStream(file) })) {
    const line = parsed(text);
    if (!line || seen.has(line.id)) continue;
    seen.add(line.id);
    yield line;
  }
}

function parsed(text: string): TrailLine | null {
  try {
    return JSON.parse(text);
  } catch {
    // Incomplete, or the empty line at the beginning.
    return null;
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  for await (const { at, event, ...rest } of readTrail(process.argv[2] ?? 'audit.jsonl'))
    console.log(
      at,
      event,
      JSON.stringify(rest.tool ?? rest.prompt ?? rest.verb ?? rest.stopReason ?? ''),
      rest.decision ?? '',
    );
}
