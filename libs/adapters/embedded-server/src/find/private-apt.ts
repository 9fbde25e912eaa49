import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { cutText } from '@coxswain/protocol';
import type { NewerSuite } from './debian-archive.ts';
import { withLowerCaseProxies } from './proxy.ts';
import { runCommand } from './run-command.ts';

/** A private apt: it shares the machine's proxies, credentials and keyrings, but not its state. */
export interface PrivateApt {
  /** Fetches and verifies the suite's package index. */
  update(onProgress: (fraction: number) => void): Promise<void>;
  /** Describes the file that `download` would fetch. Fails if the suite does not have the package. */
  describe(packageName: string): Promise<AptPackageFile>;
  /** Fetches the package into the folder and verifies it with the signed index. @returns its path. */
  download(file: AptPackageFile, onProgress: (fraction: number) => void): Promise<string>;
}

/** A package file, as the index describes it. */
export interface AptPackageFile {
  readonly packageName: string;
  readonly fileName: string;
  readonly bytes: number;
  /** The upstream version, without epoch and Debian revision: `2.15.1`. */
  readonly upstreamVersion: string;
}

/** Timeouts and environment of the private apt's calls. */
export interface PrivateAptOptions {
  readonly env: NodeJS.ProcessEnv;
  /** Timeout of each apt call, in milliseconds. */
  readonly timeoutMs: number;
  /** Timeout, in seconds, of the connection to a mirror and of its silence. */
  readonly silenceSeconds: number;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Sets up apt for one suite, below the empty folder `dir`. Nothing outside `dir` is written, and no privileges are
 * needed. Its calls throw CommandFailedError with the output of apt; `describe` throws Error for unexpected output.
 */
export async function privateApt(dir: string, suite: NewerSuite, options: PrivateAptOptions): Promise<PrivateApt> {
  for (const folder of ['state/lists/partial', 'cache/archives/partial', 'log', 'packages']) {
    await mkdir(join(dir, folder), { recursive: true });
  }
  await writeFile(join(dir, 'state/status'), '');
  await writeFile(join(dir, 'sources.list'), `${await sourceLine(dir, suite)}\n`);
  const config = join(dir, 'apt.conf');
  await writeFile(config, aptConfig(dir, options.silenceSeconds));

  const { signal, timeoutMs } = options;
  const env = { ...withLowerCaseProxies(options.env), LC_ALL: 'C' };
  const packages = join(dir, 'packages');
  const aptGet = (args: string[], onProgress?: (fraction: number) => void) =>
    runCommand('apt-get', ['-c', config, ...(onProgress ? ['-o', 'APT::Status-Fd=3'] : []), ...args], {
      timeoutMs,
      env,
      cwd: packages,
      signal,
      onStatusLine: onProgress && ((line) => readProgress(line, onProgress)),
    });
  return {
    update: async (onProgress) => void (await aptGet(['update'], onProgress)),
    describe: async (name) => parsePrintedUri(name, await aptGet(['download', '--print-uris', name])),
    download: async (file, onProgress) => {
      await aptGet(['download', file.packageName], onProgress);
      return join(packages, file.fileName);
    },
  };
}

async function sourceLine(dir: string, { uri, suite, components, signedBy }: NewerSuite): Promise<string> {
  let keyring = signedBy;
  if (signedBy?.includes('BEGIN PGP')) {
    keyring = join(dir, 'archive-key.asc');
    await writeFile(keyring, `${signedBy}\n`);
  }
  // Other programs add index targets of tens of megabytes (app catalogs, file lists). Only the package index is needed.
  const options = ['targets=Packages', ...(keyring === undefined ? [] : [`signed-by=${keyring}`])];
  return `deb [${options.join(' ')}] ${uri} ${suite} ${components.join(' ')}`;
}

/**
 * The configuration. Apt reads it after the machine's, so it overrides the machine's:
 * https://manpages.debian.org/apt.conf
 */
function aptConfig(dir: string, silenceSeconds: number): string {
  const cleared = [
    // The machine's hooks act on the machine's state, for example they delete its package cache: do not run them.
    'APT::Update::Pre-Invoke',
    'APT::Update::Post-Invoke',
    'APT::Update::Post-Invoke-Success',
    'Acquire::Languages',
  ];
  const values: Record<string, string> = {
    'Dir::State': join(dir, 'state'),
    'Dir::State::status': join(dir, 'state/status'),
    'Dir::Cache': join(dir, 'cache'),
    'Dir::Log': join(dir, 'log'),
    'Dir::Etc::SourceList': join(dir, 'sources.list'),
    'Dir::Etc::SourceParts': '/dev/null',
    // A pin that blocks newer suites on the machine must not hide the package: it is extracted, not installed.
    'Dir::Etc::Preferences': '/dev/null',
    'Dir::Etc::PreferencesParts': '/dev/null',
    // As root, apt would download as the user _apt, who has no access to the private folder.
    'APT::Sandbox::User': 'root',
    'APT::Update::Error-Mode': 'any',
    'APT::Get::AllowUnauthenticated': 'false',
    'Acquire::AllowInsecureRepositories': 'false',
    'Acquire::AllowWeakRepositories': 'false',
    'Acquire::AllowDowngradeToInsecureRepositories': 'false',
    'Acquire::Languages': 'none',
    'Acquire::PDiffs': 'false',
    'Acquire::Retries': '1',
    'Acquire::http::Timeout': String(silenceSeconds),
    'Acquire::https::Timeout': String(silenceSeconds),
  };
  const lines = Object.entries(values).map(([name, value]) => `${name} "${value.replaceAll('"', '')}";`);
  return `${[...cleared.map((name) => `#clear ${name};`), ...lines].join('\n')}\n`;
}

/** Parses lines `dlstatus:<item>:<percent>:<text>` (apt's README.progress-reporting). */
function readProgress(line: string, onProgress: (fraction: number) => void): void {
  const percent = /^dlstatus:\d+:([\d.]+):/.exec(line)?.[1];
  if (percent !== undefined) onProgress(Number(percent) / 100);
}

/** Parses a line `'<uri>' <file name> <bytes> SHA256:<digest>`. */
function parsePrintedUri(packageName: string, output: string): AptPackageFile {
  const match = /^'[^']+' (\S+) (\d+) \S+/m.exec(output);
  const [, fileName, bytes] = match ?? [];
  // <name>_<epoch>%3a<upstream>-<revision>_<arch>.deb
  const version = /_(?:\d+%3a)?([^_]+?)(?:-[^-_]+)?_[^_]+\.deb$/.exec(fileName ?? '')?.[1];
  if (fileName === undefined || version === undefined) {
    throw new Error(`apt-get download --print-uris answered ${JSON.stringify(cutText(output, 300))}`);
  }
  return { packageName, fileName, bytes: Number(bytes), upstreamVersion: version };
}
