/** A bus of a test's own, and what is served on it. */
import { existsSync } from 'node:fs';
import { defineHooks, definePersona, defineTool } from '@coxswain/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { calls, ExpectationError, says, startBus, type TestBus } from '../src/mod.ts';

let bus: TestBus;
beforeAll(async () => {
  bus = await startBus();
}, 120_000);
afterAll(() => bus?.stop(), 60_000);

const permissions = { default: 'allow' } as const;

test('a session runs, and its journal is looked at as one in memory is', async () => {
  const journal = await bus.run('hello', { model: [says('Hello.')], permissions });
  journal.expect('prompt_received', 'agent_end').expectResult({ text: 'Hello.' });
  await journal.expectReplay();
});

test('a tool is served, and a session that begins then has it', async () => {
  const served = await bus.serveTool(
    defineTool({
      name: 'shout',
      description: 'Says it louder.',
      inputSchema: { type: 'object', properties: { text: { type: 'string' } } },
      execute: ({ text }) => String(text).toUpperCase(),
    }),
  );
  const journal = await bus.run('shout', { model: [calls('shout', { text: 'ahoy' }), says('So.')], permissions });
  journal.expectCalls([{ tool: 'shout', status: 'ok', text: 'AHOY' }]);
  await served.stop();
});

test('a persona is served, with its tools and its hooks', async () => {
  const persona = definePersona({
    name: 'clerk',
    permissions,
    hooks: [{ event: 'PostToolUse', handler: () => 'by its hook' }],
  });
  const served = await bus.servePersona(persona, {
    model: [calls('count', {}), says('Two.')],
    tools: [
      defineTool({ name: 'count', description: 'Counts.', inputSchema: { type: 'object' }, execute: () => 'two' }),
    ],
  });
  const journal = await bus.run('count', { persona: 'clerk' });
  journal.expectCalls([{ tool: 'count', text: 'by its hook' }]).expectResult({ text: 'Two.' });
  await served.stop();
});

test('hooks are served', async () => {
  const served = await bus.serveHooks(
    defineHooks({ PreToolUse: { pattern: 'list_files', handler: () => ({ deny: 'not here' }) } }),
  );
  const journal = await bus.run('list', { model: [calls('list_files'), says('So.')], permissions });
  journal.expect('hook_vetoed').expectCalls([{ tool: 'list_files', status: 'denied', text: /not here/ }]);

  await served.stop();
  const closed = await bus.run('list', { model: [calls('list_files'), says('So.')], permissions });
  closed.expect({ type: 'hook_returned', failure: { code: 'hook_unavailable' } }, 'hook_vetoed');

  await served.remove();
  const open = await bus.run('list', { model: [calls('list_files'), says('So.')], permissions });
  open.expectNone('hook_call').expectCalls([{ status: 'ok' }]);
});

test('a session that waits is waited for, and steered', async () => {
  const session = await bus.start('list', {
    model: [calls('list_files'), says('So.')],
    permissions: { rules: [{ tool: 'list_files', action: 'ask' }] },
  });
  const waiting = await bus.until(session, 'approval_requested');
  const [call] = waiting.of('approval_requested');
  await session.steer('be brief', { wait: 'accepted' });
  await session.approve(call?.call_id);
  (await bus.ended(session)).expect({ type: 'message_injected', seam: 'post_tool_dispatch' }, 'agent_end');
});

test('what does not happen is told with the journal', async () => {
  const session = await bus.start('hello', { model: [says('Hello.')], permissions });
  const failure = await bus.until(session, 'call_started').catch((error: Error) => error);
  expect(failure).toBeInstanceOf(ExpectationError);
  expect(String(failure)).toContain('there is no call_started');
  expect(String(failure)).toContain('agent_end end_turn');
});

test('two buses know nothing of each other, and nothing is left of one that was stopped', async () => {
  const other = await startBus();
  try {
    expect(other.url).not.toBe(bus.url);
    expect(await other.client.sessionIds()).toEqual([]);
  } finally {
    await other.stop();
  }
  expect(existsSync(other.folder)).toBe(false);
  expect(existsSync(bus.folder)).toBe(true);
}, 120_000);
