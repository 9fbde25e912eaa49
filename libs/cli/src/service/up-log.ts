/** The log of `cox up`: the lines of all its services, in one file of the state directory. */
import type { LogSink } from '@coxswain/adapter-log';

/** The name of the log, without `.log`. */
export const UP_LOG = 'up';

const STANDARD_ERROR = 2;

/**
 * Creates the log. The file is opened with the first line.
 * @param echoes whether lines also go to standard error, for a supervisor.
 * @param fd the descriptor of standard error.
 */
export async function upLog(stateDir: string, echoes: boolean, fd = STANDARD_ERROR): Promise<LogSink> {
  const { DescriptorLog, openLogFile } = await import('@coxswain/adapter-log');
  const echo = echoes ? new DescriptorLog(fd) : null;
  let file: LogSink | null = null;
  return {
    write(line) {
      try {
        file ??= openLogFile(stateDir, UP_LOG);
        file.write(line);
      } finally {
        // A supervisor that no longer reads does not end the file, and a full disk does not end the echo.
        echo?.write(line);
      }
    },
  };
}
