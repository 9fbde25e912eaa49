/** What the image is built from and what docker-compose.yml gives its services, checked without an engine. */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { publicUrlsIn } from '../libs/cli/src/commands/serve/gateway.ts';
import { COMMANDS } from '../libs/cli/src/line/command-table.ts';
import { parseLine } from '../libs/cli/src/line/parse-line.ts';

const repository = resolve(import.meta.dirname, '..');

/**
 * Whether a file comes into the build's context: the last pattern that matches it, or a folder above it, decides
 * (https://docs.docker.com/build/concepts/context/#dockerignore-files).
 */
function comesAlong(patterns: readonly string[], path: string): boolean {
  const parts = path.split('/');
  const above = parts.map((_, index) => parts.slice(0, index + 1).join('/'));
  return patterns.reduce((kept, pattern) => {
    const negated = pattern.startsWith('!');
    const matches = above.some((one) => asExpression(negated ? pattern.slice(1) : pattern).test(one));
    return matches ? negated : kept;
  }, true);
}

function asExpression(pattern: string): RegExp {
  const source = pattern
    .split(/(\*\*\/|\*\*|\*)/)
    .map((part) =>
      part === '**/'
        ? '(?:.*/)?'
        : part === '**'
          ? '.*'
          : part === '*'
            ? '[^/]*'
            : part.replace(/[.+?^${}()|[\]\\]/g, '\\$&'),
    )
    .join('');
  return new RegExp(`^${source}$`);
}

const patterns = readFileSync(join(repository, '.dockerignore'), 'utf8')
  .split('\n')
  .map((line) => line.trim())
  .filter((line) => line !== '' && !line.startsWith('#'));

test('patterns decide as an engine has them decide', () => {
  const some = ['*', '!libs', '**/test', '!libs/cli/starter', '!scripts/bundle*.mjs'];
  expect(comesAlong(some, 'libs/cli/src/main.ts')).toBe(true);
  expect(comesAlong(some, 'libs/cli/test/help.test.ts')).toBe(false);
  expect(comesAlong(some, 'libs/cli/starter/test/bus.test.mjs')).toBe(true);
  expect(comesAlong(some.slice(0, 3), 'libs/cli/starter/test/bus.test.mjs')).toBe(false);
  expect(comesAlong(some, 'scripts/bundle-cox.mjs')).toBe(true);
  expect(comesAlong(some, 'docs/README.md')).toBe(false);
});

test('every file of the starter comes into the context of the image', () => {
  const files = execFileSync('git', ['ls-files', 'libs/cli/starter'], { cwd: repository, encoding: 'utf8' })
    .split('\n')
    .filter(Boolean);
  expect(files).toContain('libs/cli/starter/test/bus.test.mjs');
  expect(files.filter((file) => !comesAlong(patterns, file))).toEqual([]);
});

test('no test of ours and nothing that is built here does', () => {
  const left = [
    'libs/cli/test/help.test.ts',
    'libs/cli/dist/cox/main.mjs',
    'libs/cli/node_modules/x/index.js',
    'tests/tidy.test.ts',
    // Keys of a deployment.
    '.env',
  ];
  expect(left.filter((file) => comesAlong(patterns, file))).toEqual([]);
});

test('the starter is copied into the image', () => {
  const dockerfile = readFileSync(join(repository, 'Dockerfile'), 'utf8');
  expect(dockerfile).toMatch(/cp -a .*\blibs\/cli\/starter\b.* \/image\/libs\/cli\//);
});

test('packages are installed from the package files of the workspace, before any source is copied', () => {
  const dockerfile = readFileSync(join(repository, 'Dockerfile'), 'utf8');
  const build = dockerfile.slice(dockerfile.indexOf(' AS build'));
  const places = ['COPY --from=manifests', 'npm ci', 'COPY . .', 'npm run prepare'].map((what) => build.indexOf(what));
  expect(places).not.toContain(-1);
  expect(places).toEqual([...places].sort((a, b) => a - b));
});

test('the image has the server that docker-compose.yml runs', () => {
  const [dockerfile, compose] = ['Dockerfile', 'docker-compose.yml'].map((file) =>
    readFileSync(join(repository, file), 'utf8'),
  );
  const [, image] = /^ARG NATS_IMAGE=(\S+)$/m.exec(dockerfile ?? '') ?? [];
  expect(image).toMatch(/^nats:\d/);
  expect(compose).toContain(`image: ${image}\n`);
});

describe('docker-compose.yml', () => {
  interface Service {
    readonly cap_drop?: readonly string[];
    readonly command?: readonly string[];
    readonly environment?: Readonly<Record<string, unknown>>;
    readonly image?: string;
    readonly networks?: readonly string[] | Readonly<Record<string, unknown>>;
    readonly ports?: readonly string[];
    readonly read_only?: boolean;
    readonly restart?: string;
    readonly security_opt?: readonly string[];
    readonly tmpfs?: readonly string[];
    readonly volumes?: readonly string[];
  }
  const { services } = parse(readFileSync(join(repository, 'docker-compose.yml'), 'utf8'), { merge: true }) as {
    services: Readonly<Record<string, Service>>;
  };
  const lasting = Object.entries(services).filter(
    ([, { image, restart }]) => image?.includes('coxswain') && restart === 'unless-stopped',
  );
  const namesOf = ({ environment = {} }: Service) => Object.keys(environment);
  const guides = ['docs/guides', 'docs/operations'].flatMap((folder) =>
    readdirSync(join(repository, folder)).map((file) => readFileSync(join(repository, folder, file), 'utf8')),
  );
  const source = (file: string) => readFileSync(join(repository, file), 'utf8');
  const namesIn = (text: string, pattern: RegExp) => [
    ...new Set([...text.matchAll(pattern)].map(([, name]) => name as string)),
  ];

  /** Names in the guides that are no variables of a service, and why. */
  const NOT_OF_SERVICES: Readonly<Record<string, string>> = {
    ALL_PROXY: 'not read by Node; the image fetches no server',
    COX_ACTOR: 'says who a person at a command line is',
    COX_CACHE_DIR: 'the image fetches no server',
    COX_COMMANDS: 'a stream',
    COX_FETCH: 'set in the image',
    COX_GATEWAY_PORTS: 'read by the file itself',
    COX_GATEWAY_TOKEN: 'of clients of a gateway',
    COX_GATEWAY_URL: 'of clients of a gateway',
    COX_HOOKS: 'read by the file itself',
    COX_IMAGE: 'read by the file itself',
    COX_MANIFEST: 'the file gives hosts --manifest none',
    COX_NATS_SERVER: 'the image has its own server',
    COX_OTEL_RESOURCE_ATTRIBUTES: 'read by the file itself',
    COX_PERSONAS: 'read by the file itself',
    COX_SESSION: 'of an example of a client',
    COX_SESSIONS: 'a stream',
    COX_SNAPSHOTS: 'a stream',
    COX_STATE_DIR: 'set in the image',
    COX_TIMERS: 'a stream',
    COX_TOKEN: 'of an example of a client',
    COX_TOOLS: 'read by the file itself',
    COX_WORKSPACE: 'read by the file itself',
  };
  const documented = namesIn(
    guides.join('\n'),
    /(?<![A-Z0-9_])((?:COX|NATS|[A-Z]+_PROXY|[A-Z_]+_(?:API_KEY|BASE_URL)|OTEL)(?:_[A-Z0-9]+)*)(?![A-Z0-9_…])/g,
  ).filter((name) => /_/.test(name) && !/^(MY|STOCK|ORDERS)_/.test(name));

  test('passes every documented variable on to some service', () => {
    const providers = namesIn(
      source('libs/adapters/models/src/providers/endpoint.ts'),
      /'([A-Z_]+_(?:API_KEY|BASE_URL))'/g,
    );
    const telemetry = namesIn(source('libs/adapters/telemetry/src/trace-settings.ts'), /\b(OTEL_[A-Z_]+)\b/g);
    expect([providers.length, telemetry.length, documented.length].every((count) => count > 8)).toBe(true);
    const passed = new Set(lasting.flatMap(([, service]) => namesOf(service)));
    const wanted = new Set([...documented, ...providers, ...telemetry]);
    expect([...wanted].filter((name) => !passed.has(name) && !(name in NOT_OF_SERVICES)).sort()).toEqual([]);
    // A command runner has no log and no telemetry, and its commands must not learn where either goes.
    for (const [name, service] of lasting.filter(([name]) => !name.startsWith('commands-'))) {
      for (const variable of [...telemetry, 'COX_LOG_LEVEL']) expect(namesOf(service), name).toContain(variable);
    }
  });

  test('takes no variable over that the docker command sets for its plugins', () => {
    // biome-ignore lint/suspicious/noTemplateCurlyInString: as the file says it
    const own = '${COX_OTEL_RESOURCE_ATTRIBUTES:-}';
    const given = lasting.flatMap(([, { environment = {} }]) => environment.OTEL_RESOURCE_ATTRIBUTES ?? []);
    expect([...new Set(given)]).toEqual([own]);
  });

  test('has a Node that reads the variables of a proxy', () => {
    const proxies = documented.filter((name) => /^HTTPS?_PROXY$/.test(name));
    expect(proxies).toHaveLength(2);
    for (const [name, service] of lasting.filter(([name]) => !name.startsWith('commands-')))
      expect(namesOf(service), name).toEqual(expect.arrayContaining(proxies));
    expect(source('Dockerfile')).toMatch(/^ENV .*\bNODE_USE_ENV_PROXY=1\b/m);
  });

  test('gives keys of providers to the services that ask models, and to no other container', () => {
    const withKeys = Object.entries(services)
      .filter(([, service]) => namesOf(service).some((name) => name.endsWith('_API_KEY')))
      .map(([name]) => name);
    expect(withKeys).toEqual(['sessions-1', 'sessions-2', 'persona-reviewer', 'persona-writer']);
    const withSecret = Object.entries(services).filter(([, service]) =>
      namesOf(service).includes('COX_APPROVAL_WEBHOOK_SECRET'),
    );
    expect(withSecret.map(([name]) => name)).toEqual(['sessions-1', 'sessions-2']);
  });

  test('runs commands in a container of each host that has its folders, no key, no secret and no way to the bus', () => {
    const ofHosts = Object.entries(services).filter(([, { command }]) => command?.[1] === 'sessions');
    const runners = Object.entries(services).filter(([, { command }]) => command?.[1] === 'commands');
    expect(runners.map(([name]) => name)).toEqual(ofHosts.map(([name]) => name.replace('sessions', 'commands')));
    const isOfHostAlone = (mount: string) => /^(key-host|commands-\d):/.test(mount);
    const networksOf = ({ networks = {} }: Service) => (Array.isArray(networks) ? networks : Object.keys(networks));
    const elsewhere = Object.entries(services).filter(([name]) => !name.startsWith('commands-'));
    for (const [at, [name, runner]] of runners.entries()) {
      const [, host] = ofHosts[at] as [string, Service];
      const socket = `${name}:/run/commands`;
      expect(host.volumes, name).toContain(`${socket}:ro`);
      expect(host.environment?.COX_COMMAND_SOCKET, name).toBe('/run/commands/runner.sock');
      expect(runner.environment, name).toEqual({ COX_COMMAND_SOCKET: '/run/commands/runner.sock' });
      expect(runner.volumes, name).toEqual([
        socket,
        ...(host.volumes as string[]).filter((mount) => !isOfHostAlone(mount)),
      ]);
      // Without these no package manager runs: the rest cannot be written, and an engine mounts tmpfs without exec.
      expect(runner.tmpfs, name).toEqual(
        expect.arrayContaining(
          ['/tmp', '/home/node'].map((at) => expect.stringMatching(new RegExp(`^${at}:.*\\bexec$`))),
        ),
      );
      // biome-ignore lint/suspicious/noTemplateCurlyInString: as the file says it
      expect(host.environment?.COX_ROOTS, name).toBe('${COX_ROOTS:-/workspace:/examples}');
      expect(networksOf(runner), name).toEqual(['commands']);
      expect(runner).toMatchObject({
        read_only: true,
        cap_drop: ['ALL'],
        security_opt: ['no-new-privileges:true'],
      });
    }
    expect(elsewhere.filter(([, service]) => networksOf(service).includes('commands'))).toEqual([]);
  });

  test('publishes the gateway on a range of ports, each of which is one of its addresses', () => {
    const { ports, command = [] } = services.gateway as Service;
    // biome-ignore lint/suspicious/noTemplateCurlyInString: as the file says it
    const range = '${COX_GATEWAY_PORTS:-7707}';
    expect(ports).toEqual([`127.0.0.1:${range}:7707`]);
    const urls = command.filter((_, at) => command[at - 1] === '--public-url');
    expect(urls).toEqual([`http://localhost:${range}`, `http://127.0.0.1:${range}`]);
    expect(publicUrlsIn('http://localhost:7707-7709')).toEqual(
      [7707, 7708, 7709].map((port) => `http://localhost:${port}`),
    );
    expect(publicUrlsIn('https://cox.example.com')).toEqual(['https://cox.example.com']);
    expect(() => publicUrlsIn('http://localhost:7709-7707')).toThrow('a range of 1 to 64 ports');
  });

  test('gives every service a command line that cox accepts', () => {
    const given = Object.values(services).flatMap(({ command }) =>
      command && command[0] !== 'nats-server' ? [command] : [],
    );
    expect(given.length).toBeGreaterThan(8);
    for (const command of given) expect(parseLine(command, COMMANDS).kind).toBe('command');
  });

  test('has every service write JSON', () => {
    for (const [name, { command }] of lasting) expect(command, name).toContain('--json');
  });
});
