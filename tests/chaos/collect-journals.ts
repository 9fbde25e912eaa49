/** Reads every journal as the store holds it, past all of our own reading code, and keeps the bytes in a file. */
import { closeSync, openSync, writeSync } from 'node:fs';
import { JOURNAL_STREAMS, parseJournalSubject } from '@coxswain/protocol';
import { DeliverPolicy, jetstream, jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import type { ChaosServers } from './servers.ts';

/** One message of a journal stream. */
export interface StoredLine {
  readonly session: string;
  readonly stream: string;
  readonly seq: number;
  /** When the server stored it, by the wall clock, milliseconds. */
  readonly storedWallMs: number;
  /** Its bytes as text. */
  readonly text: string;
}

/** Writes all of them to a file, stream after stream. @returns how many there are. */
export async function collectJournals(servers: ChaosServers, path: string): Promise<number> {
  const nc = await connect({ ...servers.connection, name: 'chaos-collector' });
  const file = openSync(path, 'w');
  let count = 0;
  try {
    const manager = await jetstreamManager(nc, { checkAPI: false });
    const js = jetstream(nc);
    for (const stream of JOURNAL_STREAMS) {
      const { messages, last_seq } = (await manager.streams.info(stream)).state;
      if (messages === 0) continue;
      const consumer = await js.consumers.get(stream, { deliver_policy: DeliverPolicy.All });
      const reading = await consumer.consume({ max_messages: 1_000 });
      for await (const message of reading) {
        const ref = parseJournalSubject(message.subject);
        if (!ref) throw new Error(`${message.subject} is no journal's subject`);
        const line: StoredLine = {
          session: ref.sessionId,
          stream,
          seq: message.seq,
          storedWallMs: message.info.timestampNanos / 1e6,
          text: message.string(),
        };
        writeSync(file, `${JSON.stringify(line)}\n`);
        count++;
        if (message.seq >= last_seq) break;
      }
      await consumer.delete();
    }
    return count;
  } finally {
    closeSync(file);
    await nc.close();
  }
}
