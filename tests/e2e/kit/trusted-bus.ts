/** The policy of hosts whose bus only the test uses. */
import { fileURLToPath } from 'node:url';

/** The environment variable that makes a host trust its bus. */
export const TRUSTED_BUS = { COX_POLICY: fileURLToPath(new URL('./trusted-bus.yaml', import.meta.url)) };
