/** What the configuration of an embedded server is made from. */
export interface ServerConfig {
  readonly host: string;
  /** -1 lets the system choose a free one. */
  readonly port: number;
  readonly token: string;
  /** The server keeps its store in a folder `jetstream` below it. */
  readonly stateDir: string;
  /** Every write is on the disk before it is acknowledged; otherwise the last two minutes can go with the power. */
  readonly syncAlways: boolean;
  readonly logFile: string;
  readonly portsDir: string;
}

/** Records have up to 1 MiB; the server counts headers too. */
const maxPayloadBytes = 2 * 1024 * 1024;
/** The server's own 4 KiB would end the connection of whoever sends a longer subject; so a host can say what is wrong. */
const maxControlLineBytes = 64 * 1024;
/**
 * A client that is too busy to say who it is within the server's own 2 s is refused, and NATS clients take a second refusal for the
 * end of their credentials: they close for good.
 */
const authTimeoutSeconds = 30;
const logFileBytes = 16 * 1024 * 1024;
const logFilesKept = 3;

/** The text of the configuration file: https://docs.nats.io/running-a-nats-service/configuration */
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

/** A double-quoted string knows these escapes; left bare, a value could be read as a number or a variable. */
function quoted(text: string): string {
  const escapes: Record<string, string> = { '\\': '\\\\', '"': '\\"', '\n': '\\n', '\r': '\\r', '\t': '\\t' };
  return `"${text.replace(/[\\"\n\r\t]/g, (character) => escapes[character] ?? character)}"`;
}
