/** `cox admin token`: the tokens that a gateway accepts. */
import { resolve } from 'node:path';
import { systemTrouble } from '@coxswain/ports/discovery';
import { UnreadableFileError } from '@coxswain/ports/regular-file';
import { cutGraphemes, DEFAULT_TENANT, TenantId } from '@coxswain/protocol';
import { callerFolder, whileClaimed } from '../../folders/mod.ts';
import {
  CliError,
  type CommandRun,
  EXIT,
  type ExitCode,
  type Invocation,
  readDuration,
  usageError,
} from '../../line/mod.ts';
import { standardStreams, table } from '../../terminal/mod.ts';

/** The longest lifetime of a token, in ms: 36,500 days. A much later time cannot be stored. */
const EXPIRES_MAX_MS = 36_500 * 86_400_000;

const ACTIONS = ['add', 'list', 'remove'] as const;

/**
 * Adds a token to a file, removes the token of a name, or lists the tokens of a file. Exits 1 for `token_exists` and
 * `token_not_found`, 2 for invalid flags and for a name of several tenants without `--tenant`.
 */
export const run: CommandRun = async ({ flags, args, env }) => {
  const [action, name] = args;
  const path = flags.text('tokens');
  if (path === undefined) throw usageError('cox admin token needs the file: --tokens ./tokens.json');
  const file = resolve(callerFolder(env), path);
  if (!ACTIONS.some((one) => one === action))
    throw usageError(`cox admin token takes ${ACTIONS.join(', ')}, not "${cutGraphemes(String(action ?? ''), 64)}"`);
  if (action !== 'list' && (name === undefined || name.trim() === ''))
    throw usageError(
      `cox admin token ${action} needs the name of the token: its holder, which commands record as their sender`,
    );
  if (action === 'add') return changed(file, () => add(file, String(name), flags));
  for (const flag of ['scope', 'expires'])
    if (flags.on(flag)) throw usageError(`--${flag} applies to cox admin token add, not to ${action}`);
  return action === 'list' ? list(file, flags) : changed(file, () => remove(file, String(name), flags));
};

/**
 * Runs a change of the file. Of two commands at once, the second one keeps the change of the first.
 * @throws CliError with exit code 2 if the folder of the file cannot be written; the errors of the change.
 */
async function changed(file: string, change: () => Promise<ExitCode>): Promise<ExitCode> {
  return whileClaimed(file, change).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).syscall === undefined) throw error;
    throw usageError(`--tokens ${file} cannot be written: ${systemTrouble(error)}`);
  });
}

/** The tenant that the flags name; undefined if they name none. */
function tenantOf(flags: Invocation['flags']): TenantId | undefined {
  const given = flags.text('tenant');
  if (given === undefined) return undefined;
  const tenant = TenantId.safeParse(given);
  if (!tenant.success) throw usageError('--tenant takes 1 to 64 characters of A-Z a-z 0-9 _ -');
  return tenant.data;
}

async function add(file: string, name: string, flags: Invocation['flags']): Promise<ExitCode> {
  const { newToken, SCOPES, StoredToken, writeTokens } = await import('@coxswain/gateway');
  const scopes = flags.inOrder(['scope']).flatMap(({ value }) => value.split(','));
  if (scopes.length === 0) throw usageError(`--scope lists the rights of the token: ${SCOPES.join(', ')}`);
  const tenant = tenantOf(flags) ?? DEFAULT_TENANT;
  const lasts = flags.text('expires');
  const ms = lasts === undefined ? null : readDuration(lasts);
  if (lasts !== undefined && (ms === null || ms > EXPIRES_MAX_MS))
    throw usageError(
      `--expires takes a time such as 12h or 90d, of at most 36500d, not "${cutGraphemes(lasts, 40)}"; without it, the token does not expire`,
    );
  const now = Date.now();
  const { token, stored } = newToken({
    name: name.trim(),
    tenant,
    scopes: [...new Set(scopes)] as (typeof SCOPES)[number][],
    created_at: new Date(now).toISOString(),
    ...(ms === null ? {} : { expires_at: new Date(now + ms).toISOString() }),
  });
  const checked = StoredToken.safeParse(stored);
  const wrong = scopes.find((scope) => !(SCOPES as readonly string[]).includes(scope));
  if (wrong !== undefined) throw usageError(`--scope takes ${SCOPES.join(', ')}, not "${cutGraphemes(wrong, 40)}"`);
  if (!checked.success || name.startsWith('session:'))
    throw usageError('the name has 1 to 256 characters, and is not session:…');
  const known = await tokensIn(file, true);
  if (known.some((one) => one.name === stored.name && one.tenant === tenant))
    throw new CliError(
      EXIT.error,
      'token_exists',
      `token_exists: ${stored.name} of the tenant ${tenant} already has a token in ${file}`,
    );
  await writeTokens(file, [...known, stored]);
  const { sha256: _, ...shown } = stored;
  if (flags.on('json')) standardStreams.out(`${JSON.stringify({ type: 'token', ...shown, token })}\n`);
  else {
    standardStreams.out(`${token}\n`);
    standardStreams.err(
      `this is the only time that the token is shown; ${file} has its hash. Gateways accept it within a second\n`,
    );
  }
  return EXIT.ok;
}

async function remove(file: string, name: string, flags: Invocation['flags']): Promise<ExitCode> {
  const { writeTokens } = await import('@coxswain/gateway');
  const tenant = tenantOf(flags);
  const known = await tokensIn(file, false);
  const removed = known.filter((one) => one.name === name && (tenant === undefined || one.tenant === tenant));
  const [only, ...others] = new Set(removed.map((one) => one.tenant));
  if (others.length > 0)
    throw usageError(`${name} has tokens of the tenants ${[only, ...others].join(', ')}; name one with --tenant`);
  if (only === undefined) {
    const whose = `${cutGraphemes(name, 128)}${tenant === undefined ? '' : ` of the tenant ${tenant}`}`;
    throw new CliError(EXIT.error, 'token_not_found', `token_not_found: ${file} has no token of ${whose}`);
  }
  await writeTokens(
    file,
    known.filter((one) => !removed.includes(one)),
  );
  if (flags.on('json'))
    standardStreams.out(`${JSON.stringify({ type: 'token_removed', name, tenant: only, tokens: removed.length })}\n`);
  else standardStreams.out(`the token of ${name} (tenant ${only}) is removed: gateways reject it within a second\n`);
  return EXIT.ok;
}

async function list(file: string, flags: Invocation['flags']): Promise<ExitCode> {
  const tenant = tenantOf(flags);
  const known = (await tokensIn(file, false)).filter((one) => tenant === undefined || one.tenant === tenant);
  if (flags.on('json')) {
    for (const { sha256: _, ...shown } of known) standardStreams.out(`${JSON.stringify(shown)}\n`);
  } else {
    standardStreams.out(
      table(known.map((one) => [one.name, one.tenant, one.scopes.join(','), one.expires_at ?? 'never'])),
    );
  }
  return EXIT.ok;
}

async function tokensIn(file: string, mayBeMissing: boolean) {
  const { readTokens } = await import('@coxswain/gateway');
  try {
    return await readTokens(file);
  } catch (error) {
    const { cause } = error as Error;
    const isMissing = cause instanceof UnreadableFileError && cause.reason === 'not_found';
    if (mayBeMissing && isMissing) return [];
    throw error;
  }
}
