/** `cox` against an instance that runs, as people and scripts use it. */
import { execFile } from 'node:child_process';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { sessionRef, subjects } from '@coxswain/protocol';
import { connect } from '@nats-io/transport-node';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { publishBare } from '../../libs/cli/src/demo/bare-publisher.ts';
import { CoxBed, type CoxProcess, jsonLines } from './cox-process.ts';
import { until } from './kit/until.ts';

// Each test starts processes, several of them one after another.
vi.setConfig({ testTimeout: 180_000 });

let bed: CoxBed;
let up: CoxProcess;
let ready: { nats_url: string; token: string; state_dir: string };

beforeAll(async () => {
  bed = await CoxBed.make();
  await bed.file('notes.txt', 'the tide is high\n');
  await bed.file('quick.yaml', 'turns: [{text: quick, usage: {input_tokens: 3, output_tokens: 1}}, {text: again}]');
  await bed.file(
    'edit.yaml',
    `turns:
  - {text: I read first., calls: [{tool: read_file, args: {path: notes.txt}}]}
  - {text: Now I write., calls: [{tool: write_file, args: {path: out.txt, content: written}}]}
  - {text: It is written.}
`,
  );
  await bed.file(
    'slow.yaml',
    `turns:
  - {text: I wait., calls: [{tool: run_command, args: {command: sleep 30}}]}
  - {text: Waited enough.}
`,
  );
  await bed.file('endless.yaml', 'loop: true\nturns: [{calls: [{tool: read_file, args: {path: notes.txt}}]}]');
  await bed.file(
    'long.yaml',
    `turns:
  - {calls: [{tool: read_file, args: {path: notes.txt}}], usage: {input_tokens: 900, output_tokens: 10}}
  - {text: The tide is high., usage: {input_tokens: 300, output_tokens: 10}}
compactions:
  - {text: 'I have read the notes: the tide is high.'}
`,
  );
  await bed.file(
    'mate.yaml',
    `name: mate
model: {name: scripted/long.yaml, context_window: 1000}
compaction: {reserve: 200, keep_turns: 0}
tools: [read_file]
`,
  );
  // It serves the whole file.
  up = bed.start(['up', '--json'], { withinMs: 600_000 });
  await up.seen(/"type":"ready"/);
  ready = jsonLines(up.stdout())[0] as typeof ready;
}, 180_000);

afterAll(async () => {
  await bed?.remove();
}, 180_000);

const model = (name: string) => ['--model', `scripted/${name}.yaml`];

async function journal(id: string): Promise<Record<string, unknown>[]> {
  const { stdout } = await bed.run(['session', 'watch', id, '--json']);
  return jsonLines(stdout);
}

test('the first line of up --json says where the bus is', () => {
  expect(ready).toMatchObject({ type: 'ready', token: expect.any(String), state_dir: bed.stateDir });
  expect(ready.nats_url).toContain(`nats://${ready.token}@127.0.0.1:`);
});

describe('cox run', () => {
  test('gives the answer on stdout, the rest on stderr, and 0', async () => {
    const { code, stdout, stderr } = await bed.run(['run', 'go', ...model('quick')]);
    expect(code).toBe(0);
    expect(stdout).toBe('quick\n');
    expect(stderr).toContain('stopped (end_turn)');
  });

  test('reads its prompt from standard input', async () => {
    const { code, stderr } = await bed.run(['run', '-', ...model('quick')], { input: 'from a pipe\n' });
    expect(code).toBe(0);
    expect(stderr).toContain('› from a pipe');
  });

  test('rejects a folder on standard input', async () => {
    const { code, stderr } = await bed.run(['run', '-', ...model('quick')], { inputFrom: bed.folder });
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringMatching(/standard input is a folder/) });
  });

  test('as JSON gives one event a line, in order, with session, record and time', async () => {
    const { code, stdout } = await bed.run(['run', 'go', '--id', 'json-run', '--json', ...model('quick')]);
    expect(code).toBe(0);
    const lines = jsonLines(stdout);
    expect(lines.every(({ session_id, n, at, type }) => session_id === 'json-run' && n && at && type)).toBe(true);
    expect(lines.map(({ type }) => type)).toEqual(
      expect.arrayContaining(['agent_start', 'message_complete', 'agent_end']),
    );
    const numbers = lines.map(({ n }) => n as number);
    expect(numbers).toEqual([...numbers].sort((a, b) => a - b));
    expect(lines.at(-1)).toMatchObject({ type: 'agent_end', stop_reason: 'end_turn' });
  });

  test('goes on with a session that has ended', async () => {
    await bed.run(['run', 'one', '--id', 'goes-on', ...model('quick')]);
    const { code, stdout } = await bed.run(['run', 'two', '--session', 'goes-']);
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'again\n' });
  });

  test('goes on with it on another model, and in another mode of its persona', async () => {
    const persona = await bed.file(
      'modal.yaml',
      'name: modal\nprompt: You work.\nmodes:\n  plan: { prompt: You plan. }\n  build: { prompt: You build. }\n',
    );
    await bed.run(['run', 'one', '--id', 'changes', '--persona', persona, '--persona-mode', 'plan', ...model('quick')]);
    const more = await bed.file('other-model.yaml', 'turns: [{ text: from the other one }, { text: from it again }]\n');
    const other = ['--model', `scripted/${more}`, '--persona-mode', 'build'];
    const changed = await bed.run(['run', 'two', '--session', 'changes', ...other]);
    expect(changed).toMatchObject({ code: 0, stdout: 'from the other one\n' });
    // What was chosen stays, and COX_MODEL is for sessions that begin.
    const stays = await bed.run(['run', 'three', '--session', 'changes'], { env: { COX_MODEL: 'nowhere/at-all' } });
    expect(stays).toMatchObject({ code: 0, stdout: 'from it again\n' });
    const shown = await bed.run(['session', 'show', 'changes']);
    expect(shown.stdout).toMatch(/other-model\.yaml/);
    const refused = await bed.run(['run', 'four', '--session', 'changes', '--persona-mode', 'none-such']);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toMatch(/plan/);
  });

  test.each([
    ['a script that is not there', model('nothing-there'), 'script_invalid', '→'],
    ['an unknown provider', ['--model', 'nowhere/at-all'], 'provider_unknown', 'openai'],
    ['a provider without a key', ['--model', 'anthropic/claude-sonnet-4-5'], 'model_key_missing', 'ANTHROPIC_API_KEY'],
  ])('exits 2 before there is a session: %s', async (_what, named, code, remedy) => {
    const id = `refused-${code.replaceAll('_', '-')}`;
    const refused = await bed.run(['run', 'go', '--id', id, ...named]);
    expect({ code: refused.code, stdout: refused.stdout }).toEqual({ code: 2, stdout: '' });
    expect(refused.stderr).toContain(code);
    expect(refused.stderr).toContain(remedy);
    expect((await bed.run(['session', 'show', id])).stderr).toContain('session_not_found');
  });

  test('exits 4 at the cap of turns', async () => {
    const { code, stderr } = await bed.run(['run', 'go', '--max-turns', '2', ...model('endless')]);
    expect(code).toBe(4);
    expect(stderr).toContain('stopped (max_turns)');
  });

  test('says when a session outgrows its window; show says how full it is, and replay needs no summary', async () => {
    const { code, stderr } = await bed.run(['run', 'go', '--id', 'long', '--persona', './mate.yaml']);
    expect(code, stderr).toBe(0);
    expect(stderr).toMatch(/⇣ compacted: 3 messages → summary · ~[\d,]+ → ~[\d,]+ tokens/);
    const { stdout } = await bed.run(['session', 'show', 'long']);
    expect(stdout).toMatch(/context +~310 of 1,000 tokens in 2 messages, compacted once/);
    expect((await bed.run(['session', 'replay', 'long'])).code).toBe(0);
  });

  test('refuses an id that is taken', async () => {
    await bed.run(['run', 'one', '--id', 'taken', ...model('quick')]);
    const { code, stderr } = await bed.run(['run', 'two', '--id', 'taken', ...model('quick')]);
    expect(code).toBe(1);
    expect(stderr).toContain('session_exists');
    expect(stderr).toContain('run "…" --session');
  });

  test('on a folder that an instance has takes no port', async () => {
    const { code, stderr } = await bed.run(['run', 'go', '--port', '1', '--model', 'a/b']);
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: expect.stringContaining('an instance already uses this state folder'),
    });
  });
});

describe('approvals where nobody sits at a terminal', () => {
  test('exit 6; then approve without a call id, from another process; attach to the end; approve again is refused', async () => {
    const run = await bed.run(['run', 'go', '--id', 'asks', ...model('edit')]);
    expect(run.code).toBe(6);
    expect(run.stderr).toContain('cox.mjs approve asks');
    expect(jsonLines((await bed.run(['approval', 'list', '--json'])).stdout)).toEqual([
      expect.objectContaining({
        session_id: 'asks',
        tool: 'write_file',
        args: { path: 'out.txt', content: 'written' },
      }),
    ]);
    expect(await bed.run(['approve', 'ask'])).toMatchObject({ code: 0, stdout: 'asks: accepted\n' });
    const attached = await bed.run(['attach', 'asks']);
    expect({ code: attached.code, stdout: attached.stdout }).toEqual({ code: 0, stdout: 'It is written.\n' });
    expect(await readFile(join(bed.folder, 'out.txt'), 'utf8')).toBe('written');
    expect(await bed.run(['approve', 'asks', 'c2_1'])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('not_pending'),
    });
  });

  test('--on-ask deny denies and goes on', async () => {
    const { code, stdout, stderr } = await bed.run(['run', 'go', '--on-ask', 'deny', ...model('edit')]);
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'It is written.\n' });
    expect(stderr).toContain('write_file denied');
  });

  test('a rule allows', async () => {
    const { code, stderr } = await bed.run(['run', 'go', '--allow', 'write_*', ...model('edit')]);
    expect(code).toBe(0);
    expect(stderr).not.toContain('waits for an approval');
  });

  test('a decision that is remembered is shown, listed for its session and its persona, and taken back', async () => {
    expect((await bed.run(['run', 'go', '--id', 'keeps', ...model('edit')])).code).toBe(6);
    const { stdout: listed } = await bed.run(['approval', 'list', '--limit', '1']);
    expect(listed).toMatch(/^keeps +assistant +c\d+_1 +write_file +\d+ s ago +/);
    const approved = await bed.run(['approve', 'keeps', '--remember', 'persona', '--command-id', 'rule-of-keeps']);
    expect(approved.stdout).toBe('keeps: accepted\nremembered as rule-of-keeps: allow write_file of "out.txt"\n');
    await bed.run(['attach', 'keeps']);

    const rulesOf = async (...whose: string[]) =>
      jsonLines((await bed.run(['approval', 'rules', ...whose, '--json'])).stdout) as {
        id: string;
        revoked?: object;
      }[];
    expect(await rulesOf('keeps')).toMatchObject([
      { id: 'rule-of-keeps', scope: 'persona', description: expect.any(String), applies: true },
    ]);
    const ofPersona = () => rulesOf('--persona', 'assistant');
    await until('the persona to remember it', async () => (await ofPersona()).some(({ id }) => id === 'rule-of-keeps'));
    const unasked = await bed.run(['run', 'go', ...model('edit')]);
    expect({ code: unasked.code, stdout: unasked.stdout }, unasked.stderr).toEqual({
      code: 0,
      stdout: 'It is written.\n',
    });

    const revoked = await bed.run(['approval', 'rules', '--persona', 'assistant', '--remove', 'rule-of']);
    expect(revoked).toMatchObject({ code: 0, stdout: 'revoked: allow write_file of "out.txt"\n' });
    await until('it to be gone', async () => (await ofPersona()).every((rule) => rule.revoked !== undefined));
    expect((await bed.run(['run', 'go', '--id', 'asked-again', ...model('edit')])).code).toBe(6);
    await bed.run(['cancel', 'asked-again']);
    expect(await bed.run(['approval', 'rules'])).toMatchObject({ code: 2 });
  });
});

describe('steering', () => {
  test('a bare NATS client steers with plain text: delivered at the seam after the running batch', async () => {
    const run = bed.start(['run', 'go', '--id', 'bare', '--allow', 'run_command', ...model('slow')]);
    await run.seen(/▸ run_command/);
    const subject = subjects.command(sessionRef('bare'), 'steer');
    await publishBare(ready.nats_url.replace(`${ready.token}@`, ''), ready.token, subject, 'try a different approach');
    await run.seen(/steer \(finish_step\) waits/);
    expect(jsonLines((await bed.run(['message', 'list', 'bare', '--json'])).stdout)).toEqual([
      expect.objectContaining({ kind: 'steer', body: 'try a different approach', mode: 'finish_step' }),
    ]);
    const cancelled = await bed.run(['cancel-call', 'bare', '--reason', 'enough']);
    expect(cancelled).toMatchObject({ code: 0, stdout: 'bare: run_command: cancelled (enough)\n' });
    expect(await run.end).toMatchObject({ code: 0, stdout: 'Waited enough.\n' });
    const events = await journal('bare');
    expect(events.find(({ type, origin }) => type === 'message_injected' && origin === 'steer')).toMatchObject({
      seam: 'post_tool_dispatch',
      message: { role: 'user', content: [{ type: 'text', text: 'try a different approach' }] },
    });
    expect(events.find(({ type, delivered }) => type === 'loop_checkpoint' && delivered === 1)).toMatchObject({
      kind: 'post_tool_dispatch',
    });
  });

  test('cox steer waits until delivered when asked; cox cancel ends the run with 3', async () => {
    const run = bed.start(['run', 'go', '--id', 'cancelled', '--allow', 'run_command', ...model('slow')]);
    await run.seen(/▸ run_command/);
    const steering = bed.start(['steer', 'cancelled', 'hurry', '--wait', 'delivered', '--json']);
    await run.seen(/hurry/);
    expect(await bed.run(['cancel', 'cancelled', '--reason', 'wrong one'])).toMatchObject({ code: 0 });
    expect((await run.end).code).toBe(3);
    // Nothing was delivered: it waits for the next run, and so does who asked.
    steering.child.kill('SIGKILL');
    expect((await bed.run(['session', 'list'])).stdout).toContain('stopped (cancelled)');
    expect(await bed.run(['cancel', 'cancelled'])).toMatchObject({ code: 1 });
    expect(await bed.run(['steer', 'no-such-session', 'x'])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('session_not_found'),
    });
  });
});

describe('a stage that --wait names', () => {
  test('and that cannot be reached in this run ends with 1 and says what becomes of the command', async () => {
    await bed.run(['run', 'go', '--id', 'over', ...model('quick')]);
    const ended = await bed.run(['steer', 'over', 'late', '--wait', 'delivered', '--json']);
    expect(ended.code).toBe(1);
    expect(jsonLines(ended.stdout)).toMatchObject([
      { type: 'receipt', stage: 'accepted', pending_for_next_run: true },
      { type: 'error', code: 'stage_not_reached', exit_code: 1 },
    ]);
    const elsewhere = ['--state-dir', join(bed.folder, 'nobody-here')];
    await bed.run(['run', 'go', '--id', 'alone', ...model('quick'), ...elsewhere]);
    const stored = await bed.run(['steer', 'alone', 'late', '--wait', 'delivered', ...elsewhere]);
    expect(stored).toMatchObject({ code: 1, stderr: expect.stringContaining('stage_not_reached') });
    expect((await bed.run(['steer', 'alone', 'late', ...elsewhere])).code).toBe(0);
  });
});

test('a repeated --command-id answers with what became of the first', async () => {
  await bed.run(['run', 'go', '--id', 'twice', ...model('edit')]);
  for (const again of ['', ' (repeated: nothing changed)']) {
    const approved = await bed.run(['approve', 'twice', '--command-id', 'yes']);
    expect(approved).toMatchObject({ code: 0, stdout: `twice: accepted${again}\n` });
  }
});

test('a demo that is stopped cancels its session and leaves no folder behind', async () => {
  const temporary = join(bed.folder, 'tmp');
  await mkdir(temporary);
  const demo = bed.start(['demo'], { env: { TMPDIR: temporary, COX_STATE_DIR: '' } });
  await demo.seen(/list_files/);
  demo.child.kill('SIGTERM');
  const { code, stdout } = await demo.end;
  expect(stdout).toContain('the demo is cancelled');
  expect(stdout).not.toContain('did not end');
  expect(code).toBe(3);
  expect((await readdir(temporary)).filter((name) => name.startsWith('cox-'))).toEqual([]);
});

describe('afterwards', () => {
  test('replay says byte-identical; an exported journal that was tampered with stops at the record', async () => {
    await bed.run(['run', 'go', '--id', 'replayed', '--allow', '*', ...model('edit')]);
    const replay = await bed.run(['session', 'replay', 'replayed']);
    expect(replay).toMatchObject({ code: 0, stdout: expect.stringMatching(/^byte-identical \(\d+ records\)\n$/) });
    const { stdout: exported } = await bed.run(['session', 'export', 'replayed']);
    const whole = await bed.file('whole.jsonl', exported);
    expect(await bed.run(['session', 'replay', whole])).toMatchObject({ code: 0, stdout: replay.stdout });
    for (const [asked, from] of [
      ['-', { input: exported }],
      ['/dev/stdin', { input: exported }],
      ['/dev/stdin', { inputFrom: whole }],
    ] as const) {
      expect(await bed.run(['session', 'replay', asked], from), asked).toMatchObject({
        code: 0,
        stdout: replay.stdout,
      });
    }
    const lines = exported.trimEnd().split('\n');
    lines[4] = (lines[4] as string).replace('Now I write.', 'Now I wrote.');
    await writeFile(whole, `${lines.join('\n')}\n`);
    const tampered = await bed.run(['session', 'replay', whole, '--json']);
    expect(tampered.code).toBe(1);
    expect(jsonLines(tampered.stdout)[0]).toMatchObject({ type: 'replay_diverged', n: 5 });
    expect(await bed.run(['session', 'replay', '-'], { inputFrom: bed.folder })).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/standard input is a folder/),
    });
  });

  test('replay reads a pipe that has a name', async () => {
    await bed.run(['run', 'go', '--id', 'piped', ...model('quick')]);
    const { stdout: exported } = await bed.run(['session', 'export', 'piped']);
    const pipe = join(bed.folder, 'pipe');
    await promisify(execFile)('mkfifo', [pipe]);
    const whole = await bed.file('piped.jsonl', exported);
    // Opening it waits for the reader, which may not come.
    const written = promisify(execFile)('/bin/sh', ['-c', 'cat "$0" >"$1"', whole, pipe], { timeout: 10_000 });
    const [replay] = await Promise.all([bed.run(['session', 'replay', pipe]), written]);
    expect(replay).toMatchObject({ code: 0, stdout: expect.stringMatching(/^byte-identical/) });
  });

  test('diff, import and replay name the file that holds no whole journal', async () => {
    await bed.run(['run', 'go', '--id', 'torn', ...model('quick')]);
    const { stdout: exported } = await bed.run(['session', 'export', 'torn']);
    const whole = await bed.file('whole.jsonl', exported);
    const second = exported.indexOf('\n') + 1;
    const torn = await bed.file('torn.jsonl', exported.slice(0, second + 200));
    const foreign = await bed.file('foreign.jsonl', '{"a":1}\n');
    const empty = await bed.file('empty.jsonl', '');
    for (const [file, says] of [
      [torn, 'is cut off after record 1'],
      [foreign, 'is not a session export: it does not start with a record'],
      [empty, 'is not a session export: it contains no record'],
    ] as const) {
      const diff = await bed.run(['session', 'diff', whole, file]);
      expect(diff).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining(`${file} ${says}`) });
      expect(diff.stderr).toContain('export_line_invalid');
      const imported = await bed.run(['session', 'import', file, '--as', 'of-torn']);
      expect({ ...imported, stderr: imported.stderr.split('\n')[0] }).toMatchObject({
        ...{ code: 1, stdout: '', stderr: `cox: export_line_invalid: ${file} ${says}` },
      });
    }
    expect(await bed.run(['session', 'replay', empty])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`${empty} is not a session export: it contains no record`),
    });
  });

  test('replay names the record that only a later release can read, in a file and on the bus', async () => {
    await bed.run(['run', 'go', '--id', 'later', ...model('quick')]);
    const { stdout: exported } = await bed.run(['session', 'export', 'later']);
    const lines = exported.trimEnd().split('\n');
    lines[2] = (lines[2] as string).replace(/"v":1}$/, '"v":2}');
    const file = await bed.file('later.jsonl', lines.join('\n'));
    const ref = sessionRef('of-later');
    const stranger = await connect({ servers: new URL(ready.nats_url).host, token: ready.token });
    for (const line of lines) await stranger.request(subjects.journal(ref), line);
    await stranger.close();
    for (const asked of [file, 'of-later']) {
      const { code, stderr } = await bed.run(['session', 'replay', asked]);
      expect({ code, stderr }).toEqual({
        code: 1,
        stderr: expect.stringMatching(/^cox: record_unreadable: record 3 is of version 2/),
      });
    }
  });

  test('show tells the state at any record', async () => {
    await bed.run(['run', 'go', '--id', 'shown', '--allow', '*', ...model('edit')]);
    expect(JSON.parse((await bed.run(['session', 'show', 'shown', '--json'])).stdout)).toMatchObject({
      session_id: 'shown',
      state: 'stopped',
      stop_reason: 'end_turn',
    });
    expect(JSON.parse((await bed.run(['session', 'show', 'shown', '--at', '3', '--json'])).stdout)).toMatchObject({
      n: 3,
      calls: [expect.objectContaining({ tool: 'read_file' })],
    });
  });
});

describe('the instance', () => {
  test('cox env is for eval in a shell', async () => {
    const { stdout } = await bed.run(['env']);
    const shell = await promisify(execFile)('/bin/sh', ['-c', `${stdout.trim()}; printf %s "$NATS_URL"`]);
    expect(shell.stdout).toBe(ready.nats_url);
  });

  test('doctor finds nothing wrong and shows no secret', async () => {
    const { code, stdout } = await bed.run(['doctor'], { env: { OPENAI_API_KEY: 'sk-very-secret-key' } });
    expect(code, stdout).toBe(0);
    expect(stdout).toContain('OPENAI_API_KEY');
    expect(stdout).not.toContain('sk-very-secret-key');
    expect(stdout).not.toContain(ready.token);
  });

  test('a second up on the same state folder is refused, on another folder it runs beside the first', async () => {
    const same = await bed.run(['up', '--json']);
    expect(same.code).toBe(1);
    expect(jsonLines(same.stdout)[0]).toMatchObject({ type: 'error', code: 'state_dir_in_use' });
    const other = bed.start(['up', '--json', '--state-dir', 'other']);
    await other.seen(/"type":"ready"/);
    const second = jsonLines(other.stdout())[0] as typeof ready;
    expect(second.nats_url).not.toBe(ready.nats_url);
    const { code } = await bed.run(['run', 'go', '--id', 'on-other', '--nats', second.nats_url, ...model('quick')]);
    expect(code).toBe(0);
    expect((await bed.run(['session', 'list', '--state-dir', 'other'])).stdout).toContain('on-other');
    expect((await bed.run(['session', 'list'])).stdout).not.toContain('on-other');
    other.child.kill('SIGTERM');
    expect((await other.end).code).toBe(0);
  });
});
