/** A service's log: JSON lines with redacted secrets. */
import { mkdirSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Log } from '@coxswain/ports';
import { pino } from 'pino';
import { DescriptorLog } from './descriptor-log.ts';
import { RotatingFile } from './rotating-file.ts';

/**
 * The destination of a log. A {@link LogSink} can receive the lines of several services; each line then has the
 * service's name.
 */
export type LogTarget = 'file' | 'stderr' | 'stdout' | 'silent' | LogSink;

/** Receives the lines of a log. */
export interface LogSink {
  /** Writes one line, with its line feed. */
  write(line: string): void;
}

const SECRET_MIN_CHARS = 8;
const LEVELS: readonly string[] = Object.keys(pino.levels.values);
const MASK = '[redacted]';

/**
 * Creates a log with the level of `COX_LOG_LEVEL`, by default `info`. With `file` the log is `<name>.log` in the state
 * directory, in at most two files of {@link LOG_FILE_MAX_BYTES}.
 * @param name the name of the service.
 * @param secrets texts that are redacted in every line. Texts of less than 8 characters are not.
 */
export function createServiceLog(
  name: string,
  target: LogTarget,
  stateDir: string,
  env: NodeJS.ProcessEnv,
  secrets: readonly (string | undefined)[],
): Log {
  if (target === 'silent') return { debug() {}, info() {}, warn() {}, error() {} };
  const masked = secretMask(env, secrets);
  const sink = sinkOf(target, stateDir, name);
  const write = (line: string) => {
    try {
      sink.write(masked(line));
    } catch {
      // A full disk or a closed pipe: a failure of the log must not end sessions.
    }
  };
  const redact = {
    paths: ['token', 'password', 'authorization', '*.token', '*.password', '*.authorization'],
    censor: MASK,
  };
  const errors = { error: pino.stdSerializers.err };
  const asked = env.COX_LOG_LEVEL || 'info';
  const isLevel = LEVELS.includes(asked);
  const service = typeof target === 'string' ? {} : { name };
  const log = pino({ level: isLevel ? asked : 'info', redact, serializers: errors, ...service }, { write });
  if (!isLevel)
    log.warn({ given: asked }, `COX_LOG_LEVEL is none of ${LEVELS.join(', ')}: the log uses the level info`);
  return log;
}

/**
 * Creates a function that redacts the secrets of a process in a text: the given ones, and those of its environment.
 * @param secrets texts that are redacted, also in JSON form. Texts of less than 8 characters are not, because they
 *   would redact ordinary words.
 */
export function secretMask(
  env: NodeJS.ProcessEnv,
  secrets: readonly (string | undefined)[] = [],
): (text: string) => string {
  return maskFor([...secrets, ...secretsIn(env)]);
}

/**
 * The secrets of the environment: values of variables with secret names, values in header variables, and credentials in
 * addresses.
 */
function secretsIn(env: NodeJS.ProcessEnv): string[] {
  return Object.entries(env).flatMap(([name, given]) => {
    const value = given?.trim();
    if (!value) return [];
    if (/(KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS?)$/i.test(name)) return [value];
    if (/_HEADERS$/i.test(name)) return value.split(',').map((pair) => pair.slice(pair.indexOf('=') + 1).trim());
    return value.split(',').flatMap(loginIn);
  });
}

/** The password of an address; without a password the user part, which may be a token. */
function loginIn(text: string): string[] {
  const [, user = '', password] = /^[a-z][a-z0-9+.-]*:\/\/([^:@/\s]*)(?::([^@/\s]*))?@/i.exec(text.trim()) ?? [];
  return [password ?? user];
}

/** Replaces secrets, in plain and in JSON form. Short secrets are skipped, because they would redact ordinary words. */
function maskFor(secrets: readonly (string | undefined)[]): (line: string) => string {
  const texts = new Set<string>();
  for (const secret of secrets) {
    if (secret === undefined || secret.length < SECRET_MIN_CHARS) continue;
    texts.add(secret);
    texts.add(JSON.stringify(secret).slice(1, -1));
  }
  // The longest first: one that contains another would not be found after it, and its rest would remain.
  const longestFirst = [...texts].sort((one, other) => other.length - one.length);
  return (line) => {
    let clean = line;
    for (const text of longestFirst) clean = clean.replaceAll(text, MASK);
    return clean;
  };
}

function sinkOf(target: Exclude<LogTarget, 'silent'>, stateDir: string, name: string): LogSink {
  if (typeof target !== 'string') return target;
  if (target === 'file') return openLogFile(stateDir, name);
  return new DescriptorLog(target === 'stdout' ? 1 : 2);
}

/**
 * Opens `<name>.log` in a state directory, which is created if it does not exist.
 * @throws the system's error if it cannot be opened.
 */
export function openLogFile(stateDir: string, name: string): LogSink {
  makeFolder(stateDir);
  return new RotatingFile(join(stateDir, `${name}.log`));
}

/**
 * Creates the folders one by one. `mkdir` with `recursive` never ends on a file system such as /proc, which reports
 * every folder as missing.
 */
function makeFolder(path: string): void {
  const missing: string[] = [];
  for (let above = path; !statSync(above, { throwIfNoEntry: false }); above = dirname(above)) missing.push(above);
  for (const folder of missing.reverse()) {
    try {
      mkdirSync(folder, { mode: 0o700 });
    } catch (error) {
      // Another process may have created it at the same time.
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
  }
}
