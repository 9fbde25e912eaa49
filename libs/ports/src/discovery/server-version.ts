/** The oldest server that supports every setting Coxswain uses. Older servers silently ignore unknown settings. */
export const minimumServerVersion = '2.12.0';

/** The server runs but is too old: it would silently ignore stream settings that Coxswain depends on. */
export class NatsServerTooOldError extends Error {
  readonly code = 'nats_server_too_old';
  readonly path: string;
  readonly version: string;
  readonly minimum: string;

  constructor(path: string, version: string, minimum: string) {
    super(`${path} is nats-server ${version}; Coxswain needs ${minimum} or newer`);
    this.name = 'NatsServerTooOldError';
    this.path = path;
    this.version = version;
    this.minimum = minimum;
  }
}

/**
 * Whether a server's version (`2.15.1`, `v2.15.1`, `2.16.0-dev`) is `minimum` or newer. A pre-release is older than its
 * release. An invalid version is not new enough.
 */
export function serverVersionAtLeast(version: string, minimum: string): boolean {
  const actual = parseVersion(version);
  const wanted = parseVersion(minimum);
  if (!actual || !wanted) return false;
  for (const part of ['major', 'minor', 'patch'] as const) {
    if (actual[part] !== wanted[part]) return actual[part] > wanted[part];
  }
  return !actual.preRelease || wanted.preRelease;
}

function parseVersion(text: string) {
  const match = /^v?(\d+)\.(\d+)\.(\d+)(-\S+)?$/.exec(text.trim());
  if (!match) return undefined;
  return {
    major: Number(match[1]),
    minor: Number(match[2]),
    patch: Number(match[3]),
    preRelease: match[4] !== undefined,
  };
}
