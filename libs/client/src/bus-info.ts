/** What a bus is, as far as its server tells. */
import { JOURNAL_STREAMS, STREAMS } from '@coxswain/protocol';
import { jetstreamManager } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/nats-core';
import { isNotPermitted } from './not-permitted.ts';
import { isStreamNotFound } from './send-command.ts';

/** One of our streams on a bus. */
export interface StreamPresence {
  readonly name: string;
  readonly present: boolean;
  readonly messages: number;
}

/** A bus, seen from a client. */
export interface BusInfo {
  /** `2.15.1` */
  readonly serverVersion: string;
  readonly jetstream: boolean;
  /** Our streams, but for those that this user may not ask about; empty where the server has no JetStream. */
  readonly streams: readonly StreamPresence[];
}

/** Asks the server. */
export async function busInfo(nc: NatsConnection): Promise<BusInfo> {
  const serverVersion = nc.info?.version ?? 'unknown';
  if (nc.info?.jetstream !== true) return { serverVersion, jetstream: false, streams: [] };
  const manager = await jetstreamManager(nc, { checkAPI: false });
  const streams: StreamPresence[] = [];
  for (const name of [STREAMS.commands, ...JOURNAL_STREAMS, STREAMS.timers, STREAMS.snapshots]) {
    try {
      const { state } = await manager.streams.info(name);
      streams.push({ name, present: true, messages: state.messages });
    } catch (error) {
      if (isNotPermitted(error)) continue;
      if (!isStreamNotFound(error)) throw error;
      streams.push({ name, present: false, messages: 0 });
    }
  }
  return { serverVersion, jetstream: true, streams };
}
