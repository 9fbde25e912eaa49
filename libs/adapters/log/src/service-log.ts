/** A service's log: JSON lines, with secrets taken out. */
import { mkdirSync, statSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Log } from '@coxswain/ports';
import { pino } from 'pino';
import { RotatingFile } from './rotating-file.ts';

/** Where a log goes; or what takes the lines of several services, each with its service's name. */
export type LogTarget = 'file' | 'stderr' | 'stdout' | 'silent' | LogSink;

/** Takes the lines of a log. */
export interface LogSink {
  /** Writes one line, with its line feed. */
  write(line: string): void;
}

const SECRET_MIN_CHARS = 8;
const LEVELS: readonly string[] = Object.keys(pino.levels.values);
const MASK = '[redacted]';

/**
 * Makes a log, of the level that `COX_LOG_LEVEL` names. `file` is `<name>.log` in the state folder, at most
 * two files of {@link LOG_FILE_MAX_BYTES}.
 * @param name of the service.
 * @param secrets texts that never appear in a line, whatever field or message they came in.
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
      // A full disk or a closed pipe: a log that cannot be written must not end sessions.
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
 * What takes the secrets of a process out of a text: those that are given, and those of its environment.
 * @param secrets texts that never appear, as they stand and as JSON writes them. Short ones would take ordinary words with them.
 */
export function secretMask(
  env: NodeJS.ProcessEnv,
  secrets: readonly (string | undefined)[] = [],
): (text: string) => string {
  return maskFor([...secrets, ...secretsIn(env)]);
}

/** Values of variables whose names say that they are secret, headers that are sent along, and who logs in by an address. */
function secretsIn(env: NodeJS.ProcessEnv): string[] {
  return Object.entries(env).flatMap(([name, given]) => {
    const value = given?.trim();
    if (!value) return [];
    if (/(KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS?)$/i.test(name)) return [value];
    if (/_HEADERS$/i.test(name)) return value.split(',').map((pair) => pair.slice(pair.indexOf('=') + 1).trim());
    return value.split(',').flatMap(loginIn);
  });
}

/** `user:password` of an address; a token stands in the user's place. */
function loginIn(text: string): string[] {
  const [, user = '', password] = /^[a-z][a-z0-9+.-]*:\/\/([^:@/\s]*)(?::([^@/\s]*))?@/i.exec(text.trim()) ?? [];
  return [password ?? user];
}

/** Replaces secrets, as they stand and as JSON writes them. Short ones would take ordinary words with them. */
function maskFor(secrets: readonly (string | undefined)[]): (line: string) => string {
  const texts = new Set<string>();
  for (const secret of secrets) {
    if (secret === undefined || secret.length < SECRET_MIN_CHARS) continue;
    texts.add(secret);
    texts.add(JSON.stringify(secret).slice(1, -1));
  }
  return (line) => {
    let clean = line;
    for (const text of texts) clean = clean.replaceAll(text, MASK);
    return clean;
  };
}

function sinkOf(target: Exclude<LogTarget, 'silent'>, stateDir: string, name: string): LogSink {
  if (typeof target !== 'string') return target;
  if (target === 'file') return openLogFile(stateDir, name);
  const fd = target === 'stdout' ? 1 : 2;
  return { write: (line) => void writeSync(fd, line) };
}

/**
 * Opens `<name>.log` of a state folder, which is made where it is missing.
 * @throws the error of the system where it cannot be opened.
 */
export function openLogFile(stateDir: string, name: string): LogSink {
  makeFolder(stateDir);
  return new RotatingFile(join(stateDir, `${name}.log`));
}

/** Level by level: with `recursive` it never ends where a file system says of every folder that it is not there, as /proc does. */
function makeFolder(path: string): void {
  const missing: string[] = [];
  for (let above = path; !statSync(above, { throwIfNoEntry: false }); above = dirname(above)) missing.push(above);
  for (const folder of missing.reverse()) {
    try {
      mkdirSync(folder, { mode: 0o700 });
    } catch (error) {
      // Another process may have made it at the same moment.
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
  }
}
