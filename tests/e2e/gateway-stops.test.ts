/** A gateway that stops: who waits is told, and nobody who has asked nothing is waited for. */
import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { busAndHost } from './kit/fixture.ts';
import { startGateway } from './kit/gateway.ts';
import { scratchFolder } from './kit/scratch.ts';
import { scripted } from './kit/scripts.ts';
import { until } from './kit/until.ts';

const fixture = busAndHost();

test('a wait for a receipt ends with word of it; connections without a request end before', async () => {
  const gateway = await startGateway(fixture.bus, { times: { waitsEndMs: 1_000 } });
  const { body } = await gateway.post('/v1/sessions?wait=accepted', {
    prompt: 'go',
    model: await scripted([{ calls: [{ tool: 'run_command', args: { command: 'sleep 60' } }] }, { text: 'heard' }]),
    permissions: { rules: [{ tool: 'run_command', action: 'allow' }] },
    root: await scratchFolder('root'),
  });
  const id = body.session_id as string;
  await until('the call', async () => ((await gateway.get(`/v1/sessions/${id}`)).body.calls as []).length > 0);
  const ends: string[] = [];
  // As a browser that thinks ahead, and one that has begun to ask.
  for (const [name, sent] of [
    ['silent', ''],
    ['half asked', 'GET /v1/whoami HTTP/1.1\r\nhost'],
  ] as const) {
    const socket = connect(gateway.port, '127.0.0.1', () => void (sent === '' || socket.write(sent)));
    socket.on('error', () => undefined).once('close', () => ends.push(name));
  }
  const steered = gateway.post(`/v1/sessions/${id}/steer?wait=delivered`, { body: 'x' }).then((answer) => {
    ends.push('waiting');
    return answer;
  });
  await until('the steer to wait', async () => {
    const pending = (await gateway.get(`/v1/sessions/${id}/pending`)).body.pending as [];
    return pending.length > 0;
  });
  await gateway.stop();
  expect(await steered).toMatchObject({ status: 503, body: { code: 'gateway_stopping' } });
  expect(ends.slice(0, 2).sort()).toEqual(['half asked', 'silent']);
  expect(ends[2]).toBe('waiting');
  await fixture.bus.client.session(id).cancel(undefined, { wait: 'accepted' });
});
