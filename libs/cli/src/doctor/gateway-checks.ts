/** The checks of `cox doctor` for the gateway and the web console of `cox up`. */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { keptAccessFile } from '../instance/mod.ts';
import { consoleFolder, type GatewayAccess, gatewayFile, readGatewayFile } from '../service/mod.ts';
import type { Check } from './checks.ts';

/** The time limit of a response from a process on this machine, in ms. */
const ANSWER_TIMEOUT_MS = 5_000;

/** Runs the checks in order. @param pid the process id of the server on the state directory; undefined if none runs. */
export async function* gatewayChecks(stateDir: string, pid: number | undefined): AsyncGenerator<Check> {
  yield await consoleCheck();
  const file = gatewayFile(stateDir);
  const found = await stat(file).catch(() => null);
  if (!found) return;
  const open = found.mode & 0o077;
  if (open !== 0)
    yield {
      name: 'gateway_token',
      status: 'failed',
      message: `${file} is readable by other users (mode ${(found.mode & 0o777).toString(8)}), and contains a token with all rights`,
      remedy: `chmod 600 ${file}, stop cox up, delete ${keptAccessFile(stateDir)} and start cox up again, which creates new tokens`,
    };
  else yield { name: 'gateway_token', status: 'ok', message: `the token in ${file} is readable only by this user` };
  const access = pid === undefined ? null : await readGatewayFile(stateDir, pid);
  if (access) yield await reachedCheck(access);
  else
    yield {
      name: 'gateway',
      status: 'warning',
      message: `${file} is a leftover: its server no longer runs`,
      remedy: 'nothing to do: the next cox up replaces it',
    };
}

async function reachedCheck({ url }: GatewayAccess): Promise<Check> {
  const failed = (what: string): Check => ({
    name: 'gateway',
    status: 'failed',
    message: `the gateway at ${url} ${what}`,
    remedy: 'stop cox up and start it again; its log is in the state folder',
  });
  try {
    const { status } = await fetch(new URL('/readyz', url), { signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS) });
    return status === 200
      ? { name: 'gateway', status: 'ok', message: `the gateway at ${url} responds` }
      : failed(`answers HTTP ${status}: it is not ready`);
  } catch (error) {
    const { message, cause } = error as Error;
    return failed(`does not respond: ${cause instanceof Error ? cause.message : message}`);
  }
}

async function consoleCheck(): Promise<Check> {
  const page = join(consoleFolder(), 'index.html');
  if (await stat(page).catch(() => null))
    return { name: 'console', status: 'ok', message: 'the console is built into this installation' };
  return {
    name: 'console',
    status: 'warning',
    message: `this installation has no web console: ${page} is missing`,
    remedy: 'build it with npm run prepare in the checkout; everything else works without it',
  };
}
