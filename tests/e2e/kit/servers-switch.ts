/** The variable that says on which servers the end-to-end tests run, and which of them cannot choose. */

/** `one`, `cluster`, `container`, or an address; see `servers.ts`. */
export const SERVERS_SWITCH = 'COX_E2E_SERVERS';

/** Files that need no server, or start, kill or configure one of their own: no other server can replace it. */
export const OWN_SERVER_FILES: Readonly<Record<string, string>> = {
  'acp-keys.test.ts': 'a server that knows the users of cox admin auth',
  'attacker.test.ts': 'a server that knows the users of cox admin auth',
  'auth-files.test.ts': 'writes keys, and needs no server',
  'auth-personas.test.ts': 'a server that knows the users of cox admin auth',
  'auth-tools.test.ts': 'a server that knows the users of cox admin auth',
  'auth.test.ts': 'a server that knows the users of cox admin auth',
  'backup.test.ts': 'restores a backup on an empty server',
  'bus-tools-server.test.ts': 'its server is killed and started again',
  'state-at-its-bounds.test.ts': 'a server with the default max_payload',
  'flooding.test.ts': 'a server that knows the users of cox admin auth',
  'cli.test.ts': 'cox starts its embedded server',
  'cox-inspect.test.ts': 'cox starts its embedded server',
  'deployment.test.ts': 'a server that knows the users of cox admin auth',
  'doctor.test.ts': 'reads installations with faults, and needs no server',
  'dying-provider.test.ts': 'a bus in memory',
  'embedded-run.test.ts': 'cox run starts its embedded server',
  'embedded-server.test.ts': 'the embedded server itself',
  'folder-trust.test.ts': 'cox run starts its embedded server',
  'follows-restarts.test.ts': 'its server is killed and started again',
  'gateway-keys.test.ts': 'a server that knows the users of cox admin auth',
  'gateway-up.test.ts': 'cox starts its embedded server',
  'health.test.ts': 'its server is stopped',
  'init.test.ts': 'installs, tests and runs a project of its own',
  'main-job.test.ts': 'cox starts its embedded server, which is killed',
  'mcp-embedded.test.ts': 'cox mcp starts its embedded server',
  'on-a-cluster.test.ts': 'starts a cluster of its own',
  'own-keys.test.ts': 'a server that knows the users of cox admin auth',
  'personas.test.ts': 'cox run starts its embedded server',
  'roles.test.ts': 'a server that knows the users of cox admin auth',
  'servers-switch.test.ts': 'reads the switch, and needs no server',
  'steering-file.test.ts': 'cox run starts its embedded server',
  'tenant-reads.test.ts': 'a server that knows the users of cox admin auth',
  'tenants.test.ts': 'a server that knows the users of cox admin auth',
  'testing-guide.test.ts': 'programs with a bus in memory',
  'told-plainly.test.ts': 'a server that knows the users of cox admin auth',
  'unwritable-output.test.ts': 'prints to outputs that fail, and needs no server',
};
