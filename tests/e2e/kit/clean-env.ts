/** The environment of processes that tests start. */
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findServer } from '@coxswain/adapter-embedded-server';

const NO_CONFIG = join(tmpdir(), 'coxswain-tests-without-config');

// Node reads these certificates at every start, which takes up to a tenth of a second. Processes of tests need them only to
// fetch a server: this process has one fetched first.
if (process.env.NODE_EXTRA_CA_CERTS) {
  const { NATS_URL: _, ...env } = process.env;
  // A process that needs a server reports why there is none.
  await findServer({ env }).catch(() => undefined);
}

/** An environment without more certificates than Node's own. */
export function withoutExtraCertificates({ NODE_EXTRA_CA_CERTS: _, ...env }: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return env;
}

/** A child's environment: what the person who runs the tests has set for Coxswain is left out, but for where its server is. */
export function cleanEnv(extra: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(
    ([name]) =>
      !/^(COX_(?!NATS_SERVER$|FETCH$|CACHE_DIR$)|NATS_URL$|INIT_CWD$|VITEST|NODE_OPTIONS$|FORCE_COLOR$)/.test(name) &&
      !/_(API_KEY|BASE_URL)$/.test(name),
  );
  // Contexts that the tester has stored would name another bus.
  // A machine with more cores would run more hosts.
  return {
    ...withoutExtraCertificates(Object.fromEntries(kept)),
    XDG_CONFIG_HOME: NO_CONFIG,
    COX_THREADS: '1',
    ...extra,
  };
}
