import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { cutText } from '@coxswain/protocol';
import type { NewerSuite } from './debian-archive.ts';
import { withLowerCaseProxies } from './proxy.ts';
import { runCommand } from './run-command.ts';

/** An apt of our own: it shares the machine's proxies, credentials and keyrings, and none of its state. */
export interface PrivateApt {
  /** Fetches and verifies the suite's package index. */
  update(onProgress: (fraction: number) => void): Promise<void>;
  /** What `download` would fetch; a name that the suite does not carry makes apt fail. */
  describe(packageName: string): Promise<AptPackageFile>;
  /** Fetches the package into the folder and checks it against the signed index. Returns its path. */
  download(file: AptPackageFile, onProgress: (fraction: number) => void): Promise<string>;
}

/** A package file as the index names it. */
export interface AptPackageFile {
  readonly packageName: string;
  readonly fileName: string;
  readonly bytes: number;
  /** Upstream's version, epoch and Debian revision cut off: `2.15.1`. */
  readonly upstreamVersion: string;
}

/** Bounds of the private apt's calls. */
export interface PrivateAptOptions {
  readonly env: NodeJS.ProcessEnv;
  /** Bound of each apt call, in milliseconds. */
  readonly timeoutMs: number;
  /** Bound, in seconds, for a mirror's connection and for its silence. */
  readonly silenceSeconds: number;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Sets up apt below `dir`, an empty folder, for one suite. Nothing outside `dir` is written, and no privilege is needed.
 * Its calls throw CommandFailedError with what apt said.
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
  // Other programs add index targets of tens of megabytes (app catalogues, file lists); ours needs only this one.
  const options = ['targets=Packages', ...(keyring === undefined ? [] : [`signed-by=${keyring}`])];
  return `deb [${options.join(' ')}] ${uri} ${suite} ${components.join(' ')}`;
}

/** Read after the machine's own configuration, so that its values stand: https://manpages.debian.org/apt.conf */
function aptConfig(dir: string, silenceSeconds: number): string {
  const cleared = [
    // The machine's hooks act on the machine's state (they delete its package cache, for one); ours is not theirs.
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
    // A pin that keeps newer suites off the machine must not hide the package that is only extracted.
    'Dir::Etc::Preferences': '/dev/null',
    'Dir::Etc::PreferencesParts': '/dev/null',
    // Run by root, apt would hand its download to the user _apt, who cannot enter the private folder.
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

/** Lines `dlstatus:<item>:<percent>:<text>`: apt's README.progress-reporting. */
function readProgress(line: string, onProgress: (fraction: number) => void): void {
  const percent = /^dlstatus:\d+:([\d.]+):/.exec(line)?.[1];
  if (percent !== undefined) onProgress(Number(percent) / 100);
}

/** A line `'<uri>' <file name> <bytes> SHA256:<digest>`. */
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
