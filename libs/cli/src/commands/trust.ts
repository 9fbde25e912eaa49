/** `cox trust`. */
import { realpath } from 'node:fs/promises';
import { callerFolder, describeEffects, FolderTrust, filesNeedingTrust, QUESTION } from '../folders/mod.ts';
import { CliError, type CommandRun, EXIT, usageError } from '../line/mod.ts';
import { askYes, isInteractive, standardStreams } from '../terminal/mod.ts';

/**
 * Shows the files of the current folder that need trust, and stores the user's answer. With `--forget`, deletes the
 * stored answer. Exits 1 for `folder_not_trusted`.
 */
export const run: CommandRun = async ({ flags, env }) => {
  const folder = await realpath(callerFolder(env));
  const trust = new FolderTrust(folder, env, false);
  const say = (text: string, members: object) =>
    standardStreams.out(flags.on('json') ? `${JSON.stringify({ type: 'trust', folder, ...members })}\n` : `${text}\n`);
  if (flags.on('forget')) {
    await trust.forget();
    say(`${folder} is not trusted`, { trusted: false });
    return EXIT.ok;
  }
  const found = await filesNeedingTrust(folder);
  const isTrusted = (await Promise.all(found.map((one) => trust.has(one)))).every(Boolean);
  const files = found.map(({ name }) => name);
  if (found.length > 0 && !isTrusted) {
    if (!flags.on('yes') && !isInteractive()) throw usageError('cox trust needs a terminal to ask at, or --yes');
    standardStreams.err(describeEffects(folder, found));
    if (!flags.on('yes') && !(await askYes(QUESTION)))
      throw new CliError(EXIT.error, 'folder_not_trusted', `folder_not_trusted: ${folder} is not trusted`);
    if (!(await trust.trust(found)))
      throw new CliError(EXIT.error, 'folder_not_trusted', `folder_not_trusted: ${folder} is not trusted`);
  }
  const text = found.length === 0 ? 'contains nothing that needs trust' : `is trusted: ${files.join(', ')}`;
  say(`${folder} ${text}`, { trusted: true, files });
  return EXIT.ok;
};
