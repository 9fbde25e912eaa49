/** Prints a line for each event that a person at `cox up` needs to know: a session starts, waits, ends or fails. */
import { connectNats } from '@coxswain/adapter-nats';
import { printable } from '@coxswain/client';
import {
  cutGraphemes,
  decodeRecord,
  type JournalRecord,
  type SessionEvent,
  type TenantId,
  tenantSubjects,
} from '@coxswain/protocol';
import { firstLine } from '../terminal/mod.ts';

const TEXT_SHOWN_MAX = 120;

/** The bus of the sessions. */
export interface ReportedBus {
  readonly servers: string;
  readonly token?: string | undefined;
}

/**
 * Prints the lines of a tenant's sessions until it is stopped. Records are reported when they are published: those
 * published during a lost connection are missing.
 * @returns a function that ends the reports.
 */
export async function reportSessions(
  bus: ReportedBus,
  tenant: TenantId,
  say: (line: string) => void,
): Promise<() => Promise<void>> {
  const nc = await connectNats({ ...bus, name: 'cox-up' });
  nc.subscribe(tenantSubjects.events(tenant), {
    callback: (error, message) => {
      if (error) return;
      for (const line of linesOf(message.data)) say(line);
    },
  });
  return () => nc.close();
}

function linesOf(bytes: Uint8Array): string[] {
  try {
    return sessionLines(decodeRecord(bytes));
  } catch {
    // A record of a later release, or the tombstone of a deleted session.
    return [];
  }
}

/** Formats the lines of one record. */
export function sessionLines({ session_id, events }: Pick<JournalRecord, 'session_id' | 'events'>): string[] {
  return events.flatMap((event) => {
    const text = textOf(event);
    return text === null ? [] : [`${session_id} ${text}`];
  });
}

function textOf(event: SessionEvent): string | null {
  switch (event.type) {
    case 'agent_start': {
      const what = event.run === 1 ? 'started' : `started run ${event.run}`;
      return event.persona === null || event.model === null
        ? what
        : `${what}: ${event.persona} on ${shown(event.model)}`;
    }
    case 'approval_requested':
      return `waits for an approval of ${shown(event.tool)} (${shown(event.call_id)}): cox approval list`;
    case 'suspended':
      return `is suspended${event.until_ms === undefined ? '' : ` until ${new Date(event.until_ms).toISOString()}`}${
        event.reason === undefined ? '' : `: ${shown(event.reason)}`
      }`;
    case 'resumed':
      return `resumed (${event.cause})`;
    case 'agent_end':
      if (event.stop_reason !== 'error') return `ended (${event.stop_reason})`;
      return `failed${event.error ? `: ${event.error.code}: ${shown(event.error.message)}` : ''}`;
    default:
      return null;
  }
}

function shown(text: string): string {
  return cutGraphemes(printable(firstLine(text)), TEXT_SHOWN_MAX);
}
