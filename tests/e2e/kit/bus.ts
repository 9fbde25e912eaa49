/** A bus for one test file, a bare NATS client on it, and the typed client for reading back. */
import { type BusClient, connect as connectClient } from '@coxswain/client';
import { connect as connectBare, createInbox, headers, type NatsConnection } from '@nats-io/transport-node';
import { type Ground, layGround, loginOf, ownServer } from './ground.ts';
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

/** Servers that are up, and what a test does with them. */
export interface TestBus extends Ground {
  /** How a bare client logs in. */
  readonly login: ReturnType<typeof loginOf>;
  /** A bare connection: it knows nothing of Coxswain. */
  readonly bare: NatsConnection;
  /** For starting sessions and reading journals; commands under test go over `bare`. */
  readonly client: BusClient;
  /** Publishes on a subject and waits for the store's acknowledgement, as `nats req` does. */
  publish(subject: string, payload: string | Uint8Array, head?: Head): Promise<StoreAck>;
  /** Publishes a command of a session of the default tenant. */
  command(sessionId: string, verb: string, body: string | object, head?: Head): Promise<StoreAck>;
  receipts(): ReceiptBox;
  /** Commands that are stored and that no session's journal holds yet, or whose delivery is not acknowledged. */
  commandsWaiting(): Promise<number>;
}

/** The subject of a command, spelled out: what a stranger with a NATS client would type. */
export function commandSubject(sessionId: string, verb: string): string {
  return `cox.default.session.${sessionId}.${verb}`;
}

/** A bus on the servers that `COX_E2E_SERVERS` asks for. */
export async function startBus(): Promise<TestBus> {
  return busOn(await layGround());
}

/** A bus on a server of its own, or on the folder that an earlier one has left, for what no other server can stand in for. */
export async function startOwnBus(leftBehind?: string): Promise<TestBus> {
  return busOn(await ownServer(leftBehind));
}

async function busOn(ground: Ground): Promise<TestBus> {
  const login = loginOf(ground);
  const bare = await connectBare(login);
  const client = await connectClient(login);

  const publish = async (subject: string, payload: string | Uint8Array, head: Head = {}): Promise<StoreAck> => {
    const set = headers();
    for (const [name, value] of Object.entries(head)) set.set(name, value);
    const answer = await bare.request(subject, payload, { timeout: 10_000, headers: set });
    const ack = answer.json() as StoreAck & { error?: { description: string } };
    if (ack.error) throw new Error(`not stored: ${ack.error.description}`);
    return ack;
  };

  return {
    ...ground,
    login,
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
      await ground.stop();
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
