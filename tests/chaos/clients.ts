/** All clients of a run, on connections of their own. */
import { setMaxListeners } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect as connectClient } from '@coxswain/client';
import { type JournalRecord, STREAMS, sessionRef, subjects } from '@coxswain/protocol';
import { type JetStreamManager, jetstreamManager } from '@nats-io/jetstream';
import { connect as connectBare } from '@nats-io/transport-node';
import { monotonicMs } from '../bench/monotonic.ts';
import { CommandSender } from './command-sender.ts';
import type { LoadPlan } from './generator.ts';
import { SessionClient } from './session-client.ts';
import type { World } from './world.ts';

/** Clients at work. */
export interface Clients {
  /** Resolves when everything that was planned is done and the load is over. */
  readonly loaded: Promise<void>;
  /**
   * Waits until every session has ended and no command waits, for so long at most.
   * @returns what has not come to an end, in sentences.
   */
  settle(withinMs: number): Promise<readonly string[]>;
  close(): Promise<void>;
}

const MIND_EVERY_MS = 1_000;
const ASK_EVERY_MS = 250;

/** Where commands wait, by the server's own account. */
async function waiting(manager: JetStreamManager): Promise<string> {
  const { subjects: stored = {} } = (await manager.streams.info(STREAMS.commands, { subjects_filter: '>' })).state;
  const told = Object.entries(stored).map(([subject, count]) => `${subject} ${count}`);
  for await (const { name, num_pending, num_ack_pending, num_waiting } of manager.consumers.list(STREAMS.commands))
    if (num_pending + num_ack_pending > 0)
      told.push(`${name}: ${num_pending} not delivered, ${num_ack_pending} not acknowledged, ${num_waiting} pulls`);
  return told.join('; ');
}

const LOOKED_AT_ONCE = 20;

/** Connects the clients and lets them begin. */
export async function startClients({ servers, history, folder }: World, plan: LoadPlan): Promise<Clients> {
  const patience = { maxReconnectAttempts: -1, reconnectTimeWait: 250 };
  const bare = await connectBare({ ...servers.connection, ...patience, name: 'chaos-clients' });
  const client = await connectClient(servers.connection);
  const models = plan.scripts.map((turns, i) => {
    const path = join(folder, `script-${i}.yaml`);
    // JSON is YAML.
    writeFileSync(path, JSON.stringify({ loop: true, turns }));
    return `scripted/${path}`;
  });
  const [load, all] = [new AbortController(), new AbortController()];
  // Every session that waits listens to them.
  for (const { signal } of [load, all]) setMaxListeners(0, signal);
  const beganMs = monotonicMs();
  const sender = new CommandSender(bare, client, history, all.signal);
  const ports = {
    sender,
    sinceBegan: () => monotonicMs() - beganMs,
    async recordsFrom(session: string, n: number) {
      const records: JournalRecord[] = [];
      const handle = client.session(session);
      if ((await handle.lastNumber()) < n) return records;
      for await (const { record } of handle.journal({ from: n })) records.push(record);
      return records;
    },
    loadEnded: load.signal,
    ended: all.signal,
  };
  const clients = new Map(
    plan.sessions.map((one) => [one.id, new SessionClient(one, models[one.script] as string, ports)]),
  );
  bare.subscribe(subjects.events(sessionRef('x')).replace(/x$/, '*'), {
    callback: (error, message) => {
      if (error) return;
      clients.get(message.subject.split('.').at(-1) as string)?.hear(message.json());
    },
  });
  await bare.flush();
  const minding = setInterval(() => {
    for (const one of clients.values()) one.mind();
  }, MIND_EVERY_MS);
  const endOfLoad = sleep(plan.loadMs, undefined, { signal: all.signal })
    .catch(() => undefined)
    .then(() => load.abort());
  const loaded = Promise.all([...[...clients.values()].map((one) => one.run()), endOfLoad]).then(() => undefined);

  const unsettled = async (): Promise<string[]> => {
    const told: string[] = [];
    const begun = [...clients.values()].filter(({ plan: one }) => one.startAtMs < plan.loadMs);
    for (const one of begun) if (!one.hasEnded) told.push(one.told);
    // What waits in the store is looked at only then: it is asked of the server.
    if (told.length > 0) return told;
    const manager = await jetstreamManager(bare, { checkAPI: false });
    const { messages } = (await manager.streams.info(STREAMS.commands)).state;
    return messages === 0 ? [] : [`${messages} commands wait in the store: ${await waiting(manager)}`];
  };

  return {
    loaded,
    async settle(withinMs) {
      const untilMs = monotonicMs() + withinMs;
      await sender.settled();
      // What was missed of a session that had ended, nobody has looked for.
      const toLookAt = clients.values();
      const looker = async () => {
        for (const one of toLookAt) await one.look();
      };
      await Promise.all(Array.from({ length: LOOKED_AT_ONCE }, looker));
      for (;;) {
        await sender.settled();
        const told = await unsettled().catch((error: Error) => [`the store does not answer: ${error.message}`]);
        if (told.length === 0 || monotonicMs() > untilMs) return told;
        await sleep(ASK_EVERY_MS);
      }
    },
    async close() {
      load.abort();
      all.abort();
      clearInterval(minding);
      await loaded;
      await client.close();
      await bare.close();
    },
  };
}
