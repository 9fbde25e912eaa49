/** The variable that says on which servers the end-to-end tests run, and which of them cannot choose. */

/** `one`, `cluster`, `container`, or an address; see `servers.ts`. */
export const SERVERS_SWITCH = 'COX_E2E_SERVERS';

/** Files whose subject is a server of their own: they start, kill or configure it, so that no other can stand in for it. */
export const OWN_SERVER_FILES: Readonly<Record<string, string>> = {
  'attacker.test.ts': 'a server that knows the users of cox admin auth',
  'auth-files.test.ts': 'writes keys, and needs no server',
  'auth-personas.test.ts': 'a server that knows the users of cox admin auth',
  'auth.test.ts': 'a server that knows the users of cox admin auth',
  'state-at-its-bounds.test.ts': 'a server with the default max_payload',
  'flooding.test.ts': 'a server that knows the users of cox admin auth',
  'cli.test.ts': 'cox starts its embedded server',
  'cox-inspect.test.ts': 'cox starts its embedded server',
  'deployment.test.ts': 'a server that knows the users of cox admin auth',
  'dying-provider.test.ts': 'a bus in memory',
  'embedded-run.test.ts': 'cox run starts its embedded server',
  'embedded-server.test.ts': 'the embedded server itself',
  'follows-restarts.test.ts': 'its server is killed and started again',
  'gateway-keys.test.ts': 'a server that knows the users of cox admin auth',
  'gateway-up.test.ts': 'cox starts its embedded server',
  'health.test.ts': 'its server is stopped',
  'main-job.test.ts': 'cox starts its embedded server, which is killed',
  'mcp-embedded.test.ts': 'cox mcp starts its embedded server',
  'on-a-cluster.test.ts': 'starts a cluster of its own',
  'own-keys.test.ts': 'a server that knows the users of cox admin auth',
  'roles.test.ts': 'a server that knows the users of cox admin auth',
  'steering-file.test.ts': 'cox run starts its embedded server',
  'tenants.test.ts': 'a server that knows the users of cox admin auth',
};
