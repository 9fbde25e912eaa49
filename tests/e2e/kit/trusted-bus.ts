/** The policy of hosts whose bus only the test uses. */
import { tmpdir } from 'node:os';
import { delimiter } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * The environment of a host that trusts its bus. Tokens of a gateway without the scope `admin` are restricted: tests keep their
 * scripts and roots in the folder for temporary files.
 */
export const TRUSTED_BUS = {
  COX_POLICY: fileURLToPath(new URL('./trusted-bus.yaml', import.meta.url)),
  COX_ROOTS: [tmpdir(), process.cwd()].join(delimiter),
};
