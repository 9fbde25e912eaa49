/**
 * Errors of finding, fetching and starting the embedded nats-server. `code` is stable, and callers may branch on it.
 * Messages are for people.
 */

/** One source that `findServer` tried without success. */
export interface FindAttempt {
  /** Display name of the source: `nats-server on the PATH`. */
  readonly source: string;
  /** The reason why it provided no server, for people: `there is none`. */
  readonly outcome: string;
}

/** No source provided a server. `attempts` lists them in the order in which they were tried. */
export class NatsServerNotFoundError extends Error {
  readonly code = 'nats_server_not_found';
  readonly attempts: readonly FindAttempt[];

  constructor(attempts: readonly FindAttempt[], minimum: string) {
    super(
      [
        `No nats-server ${minimum} or newer was found, and none could be fetched. Tried, in this order:`,
        ...attempts.map(({ source, outcome }) => `  - ${source}: ${outcome}`),
        `Install nats-server ${minimum} or newer and put it on the PATH ` +
          '(https://docs.nats.io/running-a-nats-service/introduction/installation), ' +
          'or set COX_NATS_SERVER to the path of its binary, or NATS_URL to a server that already runs.',
      ].join('\n'),
    );
    this.name = 'NatsServerNotFoundError';
    this.attempts = attempts;
  }
}

/** The file is not a usable nats-server: missing, not executable, another program, or built for another system. */
export class NatsServerUnusableError extends Error {
  readonly code = 'nats_server_unusable';
  readonly path: string;

  constructor(path: string, reason: string, options?: ErrorOptions) {
    super(`${path} cannot be used as nats-server: ${reason}`, options);
    this.name = 'NatsServerUnusableError';
    this.path = path;
  }
}

/**
 * `COX_FETCH` has an unknown value. It is an error, because a guess could start a fetch that the user wanted to forbid.
 */
export class FetchSettingInvalidError extends Error {
  readonly code = 'fetch_setting_invalid';

  constructor(value: string) {
    super(`COX_FETCH must be "never" or "auto" (or unset), not "${value}"`);
    this.name = 'FetchSettingInvalidError';
  }
}

/** One source could not provide a server: unreachable, not found, truncated, or too old. The next source is tried. */
export class FetchFailedError extends Error {
  readonly code = 'fetch_failed';

  constructor(reason: string, options?: ErrorOptions) {
    super(reason, options);
    this.name = 'FetchFailedError';
  }
}

/** A release has an unexpected checksum. It was not stored, and no other source is tried. */
export class FetchChecksumMismatchError extends Error {
  readonly code = 'fetch_checksum_mismatch';
  readonly url: string;
  readonly expected: string;
  readonly actual: string;

  /** @param by the source of the expected checksum. */
  constructor(url: string, by: string, expected: string, actual: string) {
    super(`${url} states or has the SHA-256 ${actual}, but ${by} expects ${expected}: refused, nothing was kept`);
    this.name = 'FetchChecksumMismatchError';
    this.url = url;
    this.expected = expected;
    this.actual = actual;
  }
}

/** The process that holds a state directory, as it describes itself to other processes. */
export interface StateDirHolder {
  /** Its display name: `cox run`. */
  readonly title: string;
  /** Whether it runs its server only for a single task. Another process can then wait for its end. */
  readonly passing: boolean;
  /** The absolute path of the manifest that its session host uses, if there is one. */
  readonly manifest?: string | undefined;
}

/** Another live process holds the state directory. Two servers on one JetStream store would destroy it. */
export class StateDirInUseError extends Error {
  readonly code = 'state_dir_in_use';
  readonly stateDir: string;
  /** The process that holds the directory. */
  readonly pid: number;
  /** Its description, if it has given one. */
  readonly holder: StateDirHolder | undefined;

  constructor(stateDir: string, pid: number, holder?: StateDirHolder) {
    const who = `process ${pid}${holder ? `, ${holder.title}` : ''}`;
    const first = holder?.passing ? 'wait for its end, stop it' : 'stop that one';
    super(`${stateDir} is in use by ${who}: ${first}, or choose another state directory`);
    this.name = 'StateDirInUseError';
    this.stateDir = stateDir;
    this.pid = pid;
    this.holder = holder;
  }
}

/** Another process uses the requested port. */
export class PortInUseError extends Error {
  readonly code = 'port_in_use';

  constructor(port: number) {
    super(`port ${port} is taken by another process: stop that one, or choose another port`);
    this.name = 'PortInUseError';
  }
}

/** The server did not start. The message ends with the tail of its log. */
export class NatsServerStartFailedError extends Error {
  readonly code = 'nats_server_start_failed';
  readonly logFile: string;
  readonly logTail: string;

  constructor(reason: string, logFile: string, logTail: string, options?: ErrorOptions) {
    const quoted = logTail === '' ? 'The server wrote no log.' : `Its log (${logFile}) ends:\n${logTail}`;
    super(`nats-server did not start: ${reason}. ${quoted}`, options);
    this.name = 'NatsServerStartFailedError';
    this.logFile = logFile;
    this.logTail = logTail;
  }
}

/** The server still runs after SIGTERM and SIGKILL. Its state directory stays claimed. */
export class NatsServerStopFailedError extends Error {
  readonly code = 'nats_server_stop_failed';
  readonly pid: number;

  constructor(pid: number, waitedMs: number) {
    super(`nats-server (process ${pid}) still runs ${waitedMs} ms after it was told to stop and then killed`);
    this.name = 'NatsServerStopFailedError';
    this.pid = pid;
  }
}

/** An invalid option of the embedded server: a host that is not loopback, an invalid token, or an invalid port. */
export class ServerOptionInvalidError extends Error {
  readonly code = 'server_option_invalid';

  constructor(reason: string) {
    super(reason);
    this.name = 'ServerOptionInvalidError';
  }
}
