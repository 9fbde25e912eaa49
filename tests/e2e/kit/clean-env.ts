/** The environment of processes that tests start. */
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const NO_CONFIG = join(tmpdir(), 'coxswain-tests-without-config');

/** A child's environment: what the person who runs the tests has set for Coxswain is left out, but for where its server is. */
export function cleanEnv(extra: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(
    ([name]) =>
      !/^(COX_(?!NATS_SERVER$|FETCH$|CACHE_DIR$)|NATS_URL$|INIT_CWD$|VITEST|NODE_OPTIONS$|FORCE_COLOR$)/.test(name) &&
      !/_(API_KEY|BASE_URL)$/.test(name),
  );
  // Contexts that the tester has stored would name another bus.
  // A machine with more cores would run more hosts.
  return { ...Object.fromEntries(kept), XDG_CONFIG_HOME: NO_CONFIG, COX_THREADS: '1', ...extra };
}
