/** The policy of a host: its file, the host's additions, and the paths that no session may open. */
import { realpath, stat } from 'node:fs/promises';
import { basename, delimiter, dirname, join, resolve } from 'node:path';
import { readLocatedYaml } from '@coxswain/adapter-hooks';
import { readRegularFile, UnreadableFileError } from '@coxswain/ports/regular-file';
import {
  HostPolicy,
  type HostPolicyInput,
  type HostRules,
  type HostSurroundings,
  pathText,
  type RefusedPath,
  readStrictly,
  rulesFor,
  type TenantId,
} from '@coxswain/protocol';

/** An invalid policy. The message starts with `path:line:column`, or with the path of an unreadable file. */
export class PolicyFileError extends Error {
  override readonly name = 'PolicyFileError';
  readonly code = 'policy_invalid';
}

const FILE_MAX_BYTES = 1024 * 1024;

/**
 * Reads a policy file in YAML or JSON.
 * @throws PolicyFileError.
 */
export async function readPolicyFile(path: string): Promise<HostPolicy> {
  const file = resolve(path);
  const yaml = await readLocatedYaml(await textOf(file));
  if (!yaml.ok) throw new PolicyFileError(`${file}:${yaml.at}: ${yaml.problem}`);
  const read = readStrictly(HostPolicy, yaml.value ?? {});
  if (read.ok) return read.data;
  const [{ path: at, kind, words }] = read.problems;
  if (kind !== 'unknown_key')
    throw new PolicyFileError(
      `${file}:${yaml.at(at)}: ${at.length === 0 ? 'the policy' : `${pathText(at)}:`} ${words}`,
    );
  const place = yaml.at(at.slice(0, -1), String(at.at(-1)));
  throw new PolicyFileError(`${file}:${place}: unknown key "${pathText(at)}"${words}`);
}

async function textOf(file: string): Promise<string> {
  try {
    return (await readRegularFile(file, FILE_MAX_BYTES)).bytes.toString('utf8');
  } catch (error) {
    if (!(error instanceof UnreadableFileError)) throw error;
    const isMissing = (error.cause as NodeJS.ErrnoException | undefined)?.code === 'ENOENT';
    const why = isMissing ? 'no such file (ENOENT)' : `the file ${error.message}`;
    throw new PolicyFileError(`${file}: ${why}`, { cause: error });
  }
}

/** Sources of a host's policy. */
export interface PolicySources {
  /** Path of the policy file. Default: `COX_POLICY`. */
  readonly file: string | undefined;
  /** A policy in code, instead of a file. */
  readonly policy: HostPolicyInput | undefined;
  readonly trustsBus: boolean;
  /** The working directory. */
  readonly folder: string;
  readonly stateDir: string;
  /** Files and folders of this host, such as its keys. */
  readonly ownPaths: readonly string[];
  readonly origins: HostSurroundings['origins'];
  readonly env: NodeJS.ProcessEnv;
}

/**
 * A function that returns the rules of a tenant.
 * @throws PolicyFileError if the file is invalid, or both it and `COX_ROOTS` contain `roots`.
 */
export async function hostRules(sources: PolicySources): Promise<(tenant: TenantId, restricted: boolean) => HostRules> {
  const { env, folder, stateDir, trustsBus, origins } = sources;
  const file = sources.file ?? (env.COX_POLICY || undefined);
  const declared = sources.policy ? HostPolicy.parse(sources.policy) : file ? await readPolicyFile(file) : {};
  const roots = rootsIn(env);
  if (roots && declared.roots)
    throw new PolicyFileError(`${file ?? 'policy'}:1:1: roots: COX_ROOTS also names them; remove one of the two`);
  const policy = { ...declared, ...(roots ? { roots } : {}) };
  const { NATS_NKEY, COX_APPROVAL_WEBHOOK_SECRET_FILE } = env;
  const own = [NATS_NKEY, COX_APPROVAL_WEBHOOK_SECRET_FILE, file, ...sources.ownPaths].filter(
    (one) => one !== undefined,
  );
  const ownPaths = await Promise.all([
    refusedFolder(stateDir),
    ...own.filter((one) => one.trim() !== '').map(async (one) => ({ path: await keysOf(await realOf(resolve(one))) })),
  ]);
  const surroundings: HostSurroundings = { folder, origins, trustsBus, ownPaths };
  const known = new Map<string, HostRules>();
  return (tenant, restricted) => {
    const own = policy.tenants && Object.hasOwn(policy.tenants, tenant) ? tenant : '';
    const key = `${own}/${restricted}`;
    const rules = known.get(key) ?? rulesFor(policy, surroundings, tenant, restricted);
    known.set(key, rules);
    return rules;
  };
}

/** The state folder contains tokens and the store of an embedded server. Sessions may open two of its folders. */
async function refusedFolder(stateDir: string): Promise<RefusedPath> {
  const path = await realOf(resolve(stateDir));
  return { path, except: [join(path, 'demo'), join(path, 'steering')] };
}

/** The real path. For a missing file, its path after creation. */
async function realOf(path: string): Promise<string> {
  const above = dirname(path);
  return realpath(path).catch(async () => (above === path ? path : join(await realOf(above), basename(path))));
}

/** The maximum depth of a key in the folder of `cox admin auth`: `tenants/<tenant>/workers`. */
const KEY_DEPTH_MAX = 3;

/**
 * The folder of `cox admin auth` that contains a path, because its other keys are more powerful than the host's own.
 * Otherwise the path itself.
 */
async function keysOf(path: string): Promise<string> {
  let folder = dirname(path);
  for (let depth = 0; depth <= KEY_DEPTH_MAX; depth++) {
    const files = ['keys.json', 'accounts.conf'].map((name) => stat(join(folder, name)));
    if (await Promise.all(files).catch(() => null)) return folder;
    folder = dirname(folder);
  }
  return path;
}

/** The folders in `COX_ROOTS`, separated as in PATH; undefined if it is not set. */
function rootsIn({ COX_ROOTS: text = '' }: NodeJS.ProcessEnv): string[] | undefined {
  const folders = text.split(delimiter).filter((folder) => folder !== '');
  return folders.length === 0 ? undefined : folders.map((folder) => resolve(folder));
}
