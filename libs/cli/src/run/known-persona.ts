/** Checks that a persona is known, so that a typo does not pause a persona that does not exist. */
import type { ListedPersona } from '@coxswain/adapter-nats';
import type { BusClient } from '@coxswain/client';
import { cutGraphemes } from '@coxswain/protocol';
import { PERSONAS_FOLDER, personaPaths, readPersona } from '../folders/mod.ts';
import { CliError, EXIT } from '../line/mod.ts';

const NAMES_SHOWN_MAX = 32;
/** If these pages of sessions are not enough to decide, the name counts as known. */
const PAGES_MAX = 4;
const PAGE_SESSIONS = 16;

/**
 * Requires that a persona is announced on the bus, is in the folder `personas`, or has a session.
 * @param folder the user's working directory.
 * @throws CliError `persona_not_found` naming the known personas.
 */
export async function expectKnownPersona(
  client: BusClient,
  announced: readonly ListedPersona[],
  folder: string,
  name: string,
): Promise<void> {
  const names = new Set([...announced.map((one) => one.name), ...(await namesIn(folder))]);
  if (names.has(name) || (await mayHaveSession(client, name))) return;
  const known = [...names].sort();
  const shown = known.slice(0, NAMES_SHOWN_MAX).map((one) => cutGraphemes(one, 64));
  const list = `${shown.join(', ') || 'none'}${known.length > shown.length ? ', …' : ''}`;
  throw new CliError(
    EXIT.error,
    'persona_not_found',
    `persona_not_found: no persona ${name} is announced, stored in ${PERSONAS_FOLDER}/ or used by a session; known: ${list}`,
  );
}

async function namesIn(folder: string): Promise<string[]> {
  try {
    const read = (await personaPaths(`${folder}/${PERSONAS_FOLDER}`)).map((path) =>
      readPersona(path).then(
        ({ persona }) => [persona.name],
        // An invalid file has no name. `cox persona check` reports the problem.
        () => [],
      ),
    );
    return (await Promise.all(read)).flat();
  } catch {
    // There is no such folder.
    return [];
  }
}

async function mayHaveSession(client: BusClient, persona: string): Promise<boolean> {
  let cursor: string | undefined;
  for (let page = 0; page < PAGES_MAX; page++) {
    const { sessions, next_cursor } = await client.wire.listSessions({ persona, limit: PAGE_SESSIONS, cursor });
    if (sessions.length > 0) return true;
    if (next_cursor === null) return false;
    cursor = next_cursor;
  }
  return true;
}
