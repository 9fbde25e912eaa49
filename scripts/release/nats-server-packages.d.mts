/** Exact versions by package name, one package per platform: `optionalDependencies` of the package `coxswain`. */
export const NATS_SERVER_PACKAGES: Readonly<Record<string, string>>;
