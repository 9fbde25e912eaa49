/** A person at a real terminal: keys as a terminal sends them, through a pseudo-terminal. */
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { busAndHost } from './kit/fixture.ts';
import { endOf, eventOf } from './kit/journal.ts';
import { scratchFolder } from './kit/scratch.ts';
import { scripted } from './kit/scripts.ts';
import { hasTerminal, atTerminal as startAtTerminal } from './kit/terminal.ts';
import { until } from './kit/until.ts';
import { waitCommand } from './kit/wait-command.ts';

const fixture = busAndHost();

const [LEFT, RIGHT, HOME, BACKSPACE, ENTER] = ['\u001b[D', '\u001b[C', '\u001b[H', '\u007f', '\r'];
const atTerminal = (cox: readonly string[], cwd: string) =>
  startAtTerminal(cox, cwd, { NATS_URL: fixture.bus.natsUrl });

/** Gives this answer to the question at a terminal, and tells what was shown there until the end. */
async function answered(terminal: ReturnType<typeof atTerminal>, answer: string) {
  let shown = '';
  terminal.stdout.setEncoding('utf8').on('data', (text: string) => {
    if (!shown.includes('[y/N]') && `${shown}${text}`.includes('[y/N]')) terminal.stdin.write(`${answer}\r`);
    shown += text;
  });
  const [code] = await once(terminal, 'close');
  return { code, shown };
}

// Where there is no such terminal the test says so by its name.
test.skipIf(!hasTerminal)(
  'what is typed and corrected at a terminal is what is sent (needs util-linux’ script)',
  async () => {
    const { bus } = fixture;
    const root = await scratchFolder('keys');
    const command = waitCommand('gate');
    const model = await scripted([{ calls: [{ tool: 'run_command', args: { command } }] }, { text: 'Done.' }]);
    const cox = ['run', 'Go.', '--id', 'keys', '--model', model, '--root', root, '--allow', 'run_command'];
    const terminal = atTerminal(cox, root);
    let shown = '';
    terminal.stdout.setEncoding('utf8').on('data', (text: string) => {
      shown += text;
    });
    const ended = once(terminal, 'close');
    try {
      await eventOf(bus, 'keys', 'call_started');
      // Until the view is up, the terminal itself edits what is typed.
      await until('the view', () => shown.includes('steer ›'));
      terminal.stdin.write(`g home👨‍👩‍👧${BACKSPACE}${HOME}${RIGHT}o${LEFT}${LEFT}${LEFT}please ${ENTER}`);
      const steered = await eventOf(bus, 'keys', 'steering_received').catch((error: Error) => {
        throw new Error(`${error.message}; on the terminal: ${shown.slice(-2_000)}`);
      });
      expect(steered).toMatchObject({ body: 'please go home', mode: 'finish_step' });
      await writeFile(join(root, 'gate'), '');
      await endOf(bus, 'keys');
      expect(await ended).toEqual([0, null]);
      expect(shown).toContain('✓');
      // The terminal is given back: the cursor is shown, and a paste is not bracketed.
      expect(shown.slice(shown.lastIndexOf('\u001b[?25l'))).toContain('\u001b[?25h');
      expect(shown.slice(shown.lastIndexOf('\u001b[?2004h'))).toContain('\u001b[?2004l');
    } finally {
      terminal.kill('SIGKILL');
    }
  },
);

test.skipIf(!hasTerminal)(
  'a sweep at a terminal says what would go, and deletes nothing without a yes (needs util-linux’ script)',
  async () => {
    const { bus } = fixture;
    const root = await scratchFolder('sweep');
    await bus.command('swept', 'start', { prompt: 'Go.', model: await scripted([{ text: 'Done.' }]), root });
    await endOf(bus, 'swept');
    const sweep = async (answer: string) => {
      const { code, shown } = await answered(atTerminal(['admin', 'retention', '--keep', '0h'], root), answer);
      expect(shown).toMatch(/Delete \d+ sessions? of default for good\? \[y\/N\]/);
      return { code, shown };
    };
    expect(await sweep('')).toMatchObject({ code: 1, shown: expect.stringContaining('nothing was deleted') });
    expect(await sweep('y')).toMatchObject({ code: 0, shown: expect.stringContaining('swept') });
  },
);

test.skipIf(!hasTerminal)(
  'a deletion at a terminal says first what cannot be deleted, and asks about the others (needs util-linux’ script)',
  async () => {
    const { bus } = fixture;
    const root = await scratchFolder('delete');
    await bus.command('ended', 'start', { prompt: 'Go.', model: await scripted([{ text: 'Done.' }]), root });
    await endOf(bus, 'ended');
    const model = await scripted([{ calls: [{ tool: 'run_command', args: { command: 'true' } }] }, { text: 'Done.' }]);
    await bus.command('waits', 'start', { prompt: 'Go.', model, root });
    await eventOf(bus, 'waits', 'approval_requested');
    const hopeless = await answered(atTerminal(['session', 'delete', 'nobody', 'waits'], root), 'y');
    expect(hopeless).toMatchObject({ code: 1, shown: expect.stringMatching(/session_not_found[\s\S]*session_busy/) });
    expect(hopeless.shown).not.toContain('[y/N]');
    const declined = await answered(atTerminal(['session', 'delete', 'nobody', 'ended'], root), '');
    expect(declined).toMatchObject({
      code: 1,
      shown: expect.stringMatching(
        /session_not_found[\s\S]*Delete the session ended for good\? \[y\/N\][\s\S]*nothing was deleted/,
      ),
    });
    const agreed = await answered(atTerminal(['session', 'delete', 'ended'], root), 'y');
    expect(agreed).toMatchObject({ code: 0, shown: expect.stringMatching(/ended: deleted, \d+ records/) });
    await bus.command('waits', 'cancel', {});
    await endOf(bus, 'waits');
  },
);
