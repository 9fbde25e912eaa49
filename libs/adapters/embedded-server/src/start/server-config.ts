/** The settings of an embedded server. */
export interface ServerConfig {
  readonly host: string;
  /** -1: the system chooses a free port. */
  readonly port: number;
  readonly token: string;
  /** The state directory. The server's store is its folder `jetstream`. */
  readonly stateDir: string;
  /**
   * Whether each write is synced to disk before it is acknowledged. Otherwise a power failure may lose up to two
   * minutes.
   */
  readonly syncAlways: boolean;
  readonly logFile: string;
  readonly portsDir: string;
}

/** Maximum message size: records have up to 1 MiB, and the server also counts headers. */
const maxPayloadBytes = 2 * 1024 * 1024;
/**
 * Maximum length of a protocol line, including the subject. With the server's default of 4 KiB, a longer subject would
 * end the client's connection. With this limit, a host can answer with an error.
 */
const maxControlLineBytes = 64 * 1024;
/**
 * With the server's default of 2 s, busy clients that authenticate late are rejected. NATS clients close permanently
 * after the second rejection.
 */
const authTimeoutSeconds = 30;
const logFileBytes = 16 * 1024 * 1024;
const logFilesKept = 3;

/** Generates the configuration file: https://docs.nats.io/running-a-nats-service/configuration */
export function serverConfig(config: ServerConfig): string {
  const { host, port, token, stateDir, syncAlways, logFile, portsDir } = config;
  return `# Written by Coxswain at every start of the embedded server: changes do not last.
server_name: "coxswain-embedded"
host: ${quoted(host)}
port: ${port}
ports_file_dir: ${quoted(portsDir)}
max_payload: ${maxPayloadBytes}
max_control_line: ${maxControlLineBytes}
authorization {
  token: ${quoted(token)}
  timeout: ${authTimeoutSeconds}
}
jetstream {
  store_dir: ${quoted(stateDir)}
${syncAlways ? '  sync_interval: always\n' : ''}}
log_file: ${quoted(logFile)}
logfile_size_limit: ${logFileBytes}
logfile_max_num: ${logFilesKept}
`;
}

/** Quotes a string with the server's escapes. Without quotes, the server could parse it as a number or a variable. */
function quoted(text: string): string {
  const escapes: Record<string, string> = { '\\': '\\\\', '"': '\\"', '\n': '\\n', '\r': '\\r', '\t': '\\t' };
  return `"${text.replace(/[\\"\n\r\t]/g, (character) => escapes[character] ?? character)}"`;
}
