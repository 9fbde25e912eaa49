// The npm packages that contain nats-server. Plain JavaScript, for scripts that run without flags. Names and version
// come from the source of the adapter.
import { tsImport } from 'tsx/esm/api';

const { fetchedServerVersion, serverPackageName, serverPlatforms } = await tsImport(
  '../../libs/adapters/embedded-server/src/find/official-release.ts',
  import.meta.url,
);

/** Exact versions by package name, one package per platform: `optionalDependencies` of the package `coxswain`. */
export const NATS_SERVER_PACKAGES = Object.fromEntries(
  serverPlatforms.map((platform) => [serverPackageName(platform), fetchedServerVersion]),
);
