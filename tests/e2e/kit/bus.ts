/** A real nats-server for one test file, a bare NATS client on it, and the typed client for reading back. */
import { findServer, reportTo, startServer } from '@coxswain/adapter-nats';
import { type Client, connect as connectClient } from '@coxswain/client';
import { connect as connectBare, createInbox, headers, type NatsConnection } from '@nats-io/transport-node';
import { scratchFolder } from './scratch.ts';
import { until } from './until.ts';

/** A message's headers, by name. */
export type Head = Readonly<Record<string, string>>;

/** What the store answers to a command. */
export interface StoreAck {
  readonly stream: string;
  readonly seq: number;
  readonly duplicate?: boolean;
}

/** A receipt as it comes over the wire: read without any of our schemas. */
export type WireReceipt = Readonly<Record<string, unknown>> & { readonly stage: string; readonly command_id: string };

/** The inbox of a bare client that asked for receipts. */
export interface ReceiptBox {
  readonly subject: string;
  readonly all: readonly WireReceipt[];
  /** The next receipt of a command at a stage. */
  at(commandId: string, stage: string): Promise<WireReceipt>;
  /** The first receipt whatever it says. */
  first(): Promise<WireReceipt>;
}

/** A server that is up, and what a test does with it. */
export interface TestBus {
  readonly url: string;
  readonly token: string;
  /** With the token in it, as `cox env` gives it. */
  readonly natsUrl: string;
  readonly stateDir: string;
  /** A bare connection: it knows nothing of Coxswain. */
  readonly bare: NatsConnection;
  /** For starting sessions and reading journals; commands under test go over `bare`. */
  readonly client: Client;
  /** Publishes on a subject and waits for the store's acknowledgement, as `nats req` does. */
  publish(subject: string, payload: string | Uint8Array, head?: Head): Promise<StoreAck>;
  /** Publishes a command of a session of the default tenant. */
  command(sessionId: string, verb: string, body: string | object, head?: Head): Promise<StoreAck>;
  receipts(): ReceiptBox;
  /** Commands that are stored and that no session's journal holds yet, or whose delivery is not acknowledged. */
  commandsWaiting(): Promise<number>;
  stop(): Promise<void>;
}

/** The subject of a command, spelled out: what a stranger with a NATS client would type. */
export function commandSubject(sessionId: string, verb: string): string {
  return `cox.default.session.${sessionId}.${verb}`;
}

/**
 * Starts a server in a folder of its own, or on the one that an earlier one has left. `NATS_URL` is passed over: a test
 * ends and kills what it uses.
 */
export async function startBus(leftBehind?: string): Promise<TestBus> {
  const { NATS_URL: _, ...env } = process.env;
  const found = await findServer({ env, report: reportTo(process.stderr) });
  if (found.kind !== 'binary') throw new Error('a server binary was asked for');
  const stateDir = leftBehind ?? (await scratchFolder('bus'));
  const server = await startServer({ binary: found.path, stateDir });
  const { url, token } = server;
  const bare = await connectBare({ servers: url, token });
  const client = await connectClient({ servers: url, token });

  const publish = async (subject: string, payload: string | Uint8Array, head: Head = {}): Promise<StoreAck> => {
    const set = headers();
    for (const [name, value] of Object.entries(head)) set.set(name, value);
    const answer = await bare.request(subject, payload, { timeout: 10_000, headers: set });
    const ack = answer.json() as StoreAck & { error?: { description: string } };
    if (ack.error) throw new Error(`not stored: ${ack.error.description}`);
    return ack;
  };

  return {
    url,
    token,
    natsUrl: url.replace('nats://', `nats://${token}@`),
    stateDir,
    bare,
    client,
    publish,
    command: (sessionId, verb, body, head) =>
      publish(commandSubject(sessionId, verb), typeof body === 'string' ? body : JSON.stringify(body), head),
    receipts: () => receiptBox(bare),
    async commandsWaiting() {
      const info = await bare.request('$JS.API.STREAM.INFO.COX_COMMANDS', '', { timeout: 10_000 });
      return (info.json() as { state: { messages: number } }).state.messages;
    },
    async stop() {
      await client.close();
      await bare.close();
      await server.stop();
    },
  };
}

function receiptBox(bare: NatsConnection): ReceiptBox {
  const subject = createInbox();
  const all: WireReceipt[] = [];
  bare.subscribe(subject, { callback: (_error, message) => void all.push(message.json() as WireReceipt) });
  return {
    subject,
    all,
    at: (commandId, stage) =>
      until(`the receipt ${stage} of ${commandId}; so far ${JSON.stringify(all)}`, () =>
        all.find((receipt) => receipt.command_id === commandId && receipt.stage === stage),
      ),
    first: () => until('a receipt', () => all[0]),
  };
}
