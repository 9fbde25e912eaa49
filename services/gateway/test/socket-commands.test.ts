/** What comes over a WebSocket, and how it is answered. */
import type { Session } from '@coxswain/client';
import { CommandId } from '@coxswain/protocol';
import { RequestRates } from '@coxswain/session';
import type { FastifyRequest } from 'fastify';
import { expect, test } from 'vitest';
import type { WebSocket } from 'ws';
import { GATEWAY_BOUNDS } from '../src/gateway-bounds.ts';
import type { GatewayContext } from '../src/gateway-context.ts';
import { createMetrics } from '../src/gateway-metrics.ts';
import { LimitedReads } from '../src/limited-reads.ts';
import { SocketCommands } from '../src/socket/socket-commands.ts';
import { SILENT } from './app-on-nothing.ts';

/** A socket on a session that takes commands and never says what became of them. */
function onSilentSession(
  burst: number,
  send: Session['wire']['send'] = () => new Promise(() => undefined),
  recorded: readonly object[] = [],
  scopes: readonly string[] = ['admin'],
) {
  const told: { ref?: unknown; problem?: { code: string } }[] = [];
  const socket = {
    OPEN: 1,
    readyState: 1,
    bufferedAmount: 0,
    send: (text: string) => told.push(JSON.parse(text)),
  } as unknown as WebSocket;
  const context = {
    metrics: createMetrics(),
    log: SILENT,
    now: () => 0,
    rates: new RequestRates(burst, 1, 10, () => 0),
    expensiveReads: new LimitedReads(1, 1),
  } as unknown as GatewayContext;
  const principal = { name: 'ada', tenant: 'default', scopes: new Set(scopes), expiresAt: null };
  const request = { principal, trace: null } as unknown as FastifyRequest;
  const journal = async function* () {
    for (const [at, input] of recorded.entries()) yield { record: { n: at + 1, input } };
  };
  const session = { id: 's', wire: { send }, journal } as unknown as Session;
  const commands = new SocketCommands(context, session, request, socket, new AbortController().signal);
  const sayText = (text: string) => commands.handle(Buffer.from(text), false);
  const say = (message: object) => sayText(JSON.stringify(message));
  return { say, sayText, told };
}

const steer = (ref: string | number) => ({ type: 'command', ref, verb: 'steer', body: { body: 'x' } });
const settled = () => new Promise((resolve) => setImmediate(resolve));

test('each command beyond those that may wait is refused by its own name', async () => {
  const { say, told } = onSilentSession(1_000);
  for (let ref = 1; ref <= GATEWAY_BOUNDS.socketCommandsMax + 2; ref++) say(steer(ref));
  await settled();
  expect(told).toMatchObject([
    { ref: GATEWAY_BOUNDS.socketCommandsMax + 1, problem: { code: 'rate_limited' } },
    { ref: GATEWAY_BOUNDS.socketCommandsMax + 2, problem: { code: 'rate_limited' } },
  ]);
});

test('so is each beyond what a token may send', async () => {
  const { say, told } = onSilentSession(1);
  for (const ref of ['one', 'two']) say(steer(ref));
  await settled();
  expect(told).toMatchObject([{ ref: 'two', problem: { code: 'rate_limited' } }]);
});

test('a prompt that may become a steer needs the scope of both', async () => {
  const { say, told } = onSilentSession(10, undefined, [], ['run']);
  say({ type: 'command', ref: 'one', verb: 'prompt', body: { body: 'go', if_running: 'steer' } });
  await settled();
  expect(told).toMatchObject([{ ref: 'one', problem: { code: 'scope_missing', field: 'if_running' } }]);
});

test.each([
  ['no JSON', '{'],
  ['a repeated member', '{"verb":"cancel","verb":"cancel"}'],
  ['no command', '{"type":"command","ref":"one","verb":"steeer"}'],
])('%s counts as well', async (_what, text) => {
  const { say, sayText, told } = onSilentSession(1);
  sayText(text);
  say(steer('two'));
  await settled();
  expect(told).toHaveLength(2);
  expect(told.find(({ ref }) => ref === 'two')).toMatchObject({ problem: { code: 'rate_limited' } });
});

test('a command’s own id is command_id, and what it revokes target_command_id; the names on NATS are rejected', async () => {
  const sent: unknown[] = [];
  const { say, told } = onSilentSession(1_000, async (...command) => {
    sent.push(command);
    return { commandId: CommandId.parse('mine'), seq: 7, duplicate: false };
  });
  const revoke = (body: object) => say({ type: 'command', verb: 'revoke', body });
  revoke({ command_id: 'mine', target_command_id: 'waits' });
  await settled();
  expect(sent).toMatchObject([['revoke', { id: 'mine', command_id: 'waits' }, { id: 'mine' }]]);
  expect(told).toMatchObject([{ type: 'sent', command_id: 'mine', seq: 7 }]);
  revoke({ id: 'mine', target_command_id: 'waits' });
  await settled();
  expect(told[1]).toMatchObject({
    problem: { code: 'unknown_field', field: 'id', detail: expect.stringContaining('own id is "command_id"') },
  });
  expect(sent).toHaveLength(1);
});

test('a command_id of another command is refused', async () => {
  const recorded = [{ type: 'command', verb: 'cancel', command_id: 'mine', body: {} }];
  const send = async () => ({ commandId: CommandId.parse('mine'), seq: 7, duplicate: true });
  const { say, told } = onSilentSession(1_000, send, recorded);
  for (const verb of ['cancel', 'suspend']) say({ type: 'command', ref: verb, verb, body: { command_id: 'mine' } });
  await settled();
  expect(told.toSorted((one, other) => String(one.ref).localeCompare(String(other.ref)))).toMatchObject([
    { ref: 'cancel', type: 'sent' },
    { ref: 'suspend', problem: { code: 'command_id_reused', field: 'command_id' } },
  ]);
});
