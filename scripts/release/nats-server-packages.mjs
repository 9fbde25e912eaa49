// The npm packages that carry nats-server. Plain JavaScript, for scripts that run without flags; names and version come from
// the source of the adapter.
import { tsImport } from 'tsx/esm/api';

const { fetchedServerVersion, serverPackageName, serverPlatforms } = await tsImport(
  '../../libs/adapters/nats/src/server/official-release.ts',
  import.meta.url,
);

/** Exact version by name, one package for each platform: `optionalDependencies` of the package `coxswain`. */
export const NATS_SERVER_PACKAGES = Object.fromEntries(
  serverPlatforms.map((platform) => [serverPackageName(platform), fetchedServerVersion]),
);
