/** The log of `cox up`: the lines of all its services, in one file of the state directory. */
import { writeSync } from 'node:fs';
import type { LogSink } from '@coxswain/adapter-log';

/** The name of the log, without `.log`. */
export const UP_LOG = 'up';

/**
 * Creates the log. The file is opened with the first line.
 * @param echoes whether lines also go to standard error, for a supervisor.
 */
export async function upLog(stateDir: string, echoes: boolean): Promise<LogSink> {
  const { openLogFile } = await import('@coxswain/adapter-log');
  let file: LogSink | null = null;
  return {
    write(line) {
      if (echoes) writeSync(2, line);
      file ??= openLogFile(stateDir, UP_LOG);
      file.write(line);
    },
  };
}
