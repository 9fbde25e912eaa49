/** Exact version by name, one package for each platform: `optionalDependencies` of the package `coxswain`. */
export const NATS_SERVER_PACKAGES: Readonly<Record<string, string>>;
