/** A gateway as people run it, in a process of its own, to be killed. */
import { join } from 'node:path';
import { Child, COX_MAIN, cox } from './child.ts';
import type { Ground } from './ground.ts';
import { scratchFolder } from './scratch.ts';

/** A file of tokens, and the token that was made for each name. */
export interface MadeTokens {
  readonly file: string;
  readonly of: Readonly<Record<string, string>>;
}

/** Makes tokens with `cox admin token`. */
export async function makeTokens(names: readonly string[], scope: string): Promise<MadeTokens> {
  const file = join(await scratchFolder('tokens'), 'tokens.json');
  const of: Record<string, string> = {};
  for (const name of names) {
    const made = await cox(['admin', 'token', 'add', name, '--tokens', file, '--scope', scope]);
    if (made.code !== 0) throw new Error(made.told);
    of[name] = made.lines[0] ?? '';
  }
  return { file, of };
}

/** One that listens. */
export interface GatewayProcess {
  readonly child: Child;
  readonly port: number;
}

/**
 * Starts one and waits until it listens.
 * @param port 0 for a free one.
 * @param more arguments of `cox serve gateway`: who is let in.
 */
export async function serveGateway(
  bus: Pick<Ground, 'natsUrl' | 'stateDir'>,
  port: number,
  more: readonly string[],
  env: NodeJS.ProcessEnv = {},
): Promise<GatewayProcess> {
  const args = ['serve', 'gateway', '--nats', bus.natsUrl, '--listen', `127.0.0.1:${port}`, '--json', ...more];
  const child = new Child(COX_MAIN, args, { env: { COX_STATE_DIR: bus.stateDir, ...env } });
  await child.says('"type":"ready"');
  return { child, port: child.json[0]?.port as number };
}
