/** Before the first test: the servers that `COX_E2E_SERVERS` asks for, where it asks for others than the tests' own. */
import { SERVERS_SWITCH } from './servers-switch.ts';

export default async function prepareServers(): Promise<(() => Promise<void>) | undefined> {
  // Whoever runs one file of unit tests need not wait for what these servers load.
  if ([undefined, '', 'one'].includes(process.env[SERVERS_SWITCH])) return undefined;
  const { prepareSharedServers } = await import('./shared-servers.ts');
  return prepareSharedServers();
}
