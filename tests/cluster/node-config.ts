/** The configuration of one server of a cluster. */

/** Where a node is reached; the same after each of its restarts. */
export interface NodeAddress {
  readonly name: string;
  readonly host: string;
  readonly clientPort: number;
  readonly routePort: number;
  readonly monitorPort: number;
}

/** What all nodes of a cluster have in common. */
export interface ClusterSettings {
  /** What lets clients in; null where `include` says who may. */
  readonly token: string | null;
  /** A file with accounts, as `cox admin auth` writes it. */
  readonly include: string | null;
  /** `always`, or how often the disk is told to keep what was written, as nats-server reads it: `2m`. */
  readonly syncInterval: string;
  /** The cipher of JetStream's encryption at rest; null for none. */
  readonly cipher: 'aes' | 'chachapoly' | null;
}

/** Commands and records have up to 1 MiB with their headers. */
const MAX_PAYLOAD_BYTES = 2 * 1024 * 1024;
/** As with the embedded server: whoever sends a longer subject is told, rather than cut off. */
const MAX_CONTROL_LINE_BYTES = 64 * 1024;

/** The text of a node's file. */
export function nodeConfig(
  node: NodeAddress,
  all: readonly NodeAddress[],
  { token, include, syncInterval, cipher }: ClusterSettings,
  storeDir: string,
  logFile: string,
): string {
  const routes = all.map(({ host, routePort }) => `nats-route://${host}:${routePort}`);
  return [
    `server_name: ${JSON.stringify(node.name)}`,
    `listen: "${node.host}:${node.clientPort}"`,
    `http: "${node.host}:${node.monitorPort}"`,
    `log_file: ${JSON.stringify(logFile)}`,
    `max_payload: ${MAX_PAYLOAD_BYTES}`,
    `max_control_line: ${MAX_CONTROL_LINE_BYTES}`,
    `jetstream { store_dir: ${JSON.stringify(storeDir)}, sync_interval: "${syncInterval}"${cipher === null ? '' : `, cipher: ${cipher}, key: "of a test"`} }`,
    // One alone is no cluster: it would wait for others to agree with.
    ...(all.length === 1
      ? []
      : [`cluster { name: "coxswain", listen: "${node.host}:${node.routePort}", routes: ${JSON.stringify(routes)} }`]),
    ...(token === null ? [] : [`authorization { token: ${JSON.stringify(token)}, timeout: 30 }`]),
    ...(include === null ? [] : [`include ${JSON.stringify(include)}`]),
    '',
  ].join('\n');
}
