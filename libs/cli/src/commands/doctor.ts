/** `cox doctor`. */
import { checks } from '../doctor/mod.ts';
import { type CommandRun, EXIT, type ExitCode } from '../line/mod.ts';
import { counted, createStyle, standardStreams, wantsColour } from '../terminal/mod.ts';

/** Checks this machine and the bus. Exits 1 if a check fails. */
export const run: CommandRun = async ({ flags, env }) => {
  const style = createStyle(wantsColour(process.stdout, env));
  const marks = { ok: style.green('✓'), warning: style.yellow('!'), failed: style.red('✗') };
  let code: ExitCode = EXIT.ok;
  // Text output has one line for all streams without a problem.
  let fineStreams = 0;
  for await (const check of checks(flags, env)) {
    if (!flags.on('json')) {
      if (check.status === 'ok' && check.name.startsWith('stream_')) {
        fineStreams += 1;
        continue;
      }
      if (fineStreams > 0)
        standardStreams.out(`${marks.ok} ${counted(fineStreams, 'stream')} with free space and all copies\n`);
      fineStreams = 0;
    }
    standardStreams.out(
      flags.on('json')
        ? `${JSON.stringify({ type: 'check', ...check })}\n`
        : `${marks[check.status]} ${check.message}\n${check.status === 'ok' ? '' : `  → ${check.remedy}\n`}`,
    );
    if (check.status === 'failed') code = EXIT.error;
  }
  return code;
};
