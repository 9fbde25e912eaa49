/** The steering file of a session that this process has joined. */
import { dirname, join, resolve } from 'node:path';
import type { Session } from '@coxswain/client';
import { makeFolder } from '@coxswain/ports/discovery';
import { callerFolder } from '../folders/mod.ts';
import { type Invocation, usageError } from '../line/mod.ts';
import { type WatchedSteeringFile, watchSteeringFile } from './watch-steering-file.ts';

type Where = Pick<Invocation, 'flags' | 'env'>;

/**
 * The file in `--steering-file` or `AGENT_STEERING_FILE`; null if neither is set: then each session has its own file.
 * @throws CliError with exit code 2 for an empty flag.
 */
export function namedSteeringFile({ flags, env }: Where): string | null {
  const named = flags.text('steering-file');
  if (named?.trim() === '') throw usageError('--steering-file needs a path');
  const path = named ?? (env.AGENT_STEERING_FILE || undefined);
  return path === undefined ? null : resolve(callerFolder(env), path);
}

/** Watches the session's steering file until it is closed. */
export async function steerFromFile(
  where: Where,
  stateDir: string,
  session: Session,
  notice: (text: string) => void,
): Promise<WatchedSteeringFile> {
  const named = namedSteeringFile(where);
  const path = named ?? join(stateDir, 'steering', `${session.id}.steering`);
  if (named === null) {
    // Without the folder, the file cannot be created. The first read reports the problem.
    await makeFolder(dirname(path)).catch(() => undefined);
  }
  return watchSteeringFile({
    path,
    sessionId: session.id,
    send: (text, id) => session.steer(text, { id, actor: 'steering-file' }),
    notice,
  });
}
