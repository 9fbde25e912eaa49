/**
 * The policy of a host bounds what requests may name. The host rejects a command that names more
 * ({@link checkRequest}). Its adapters apply the same rules at the time of use, because sessions may have been
 * imported, forked, or started under an older policy. docs/guides/threat-model.md and docs/guides/policy.md explain it.
 */
import * as z from 'zod';
import { MessageMode } from '../personas/crews.ts';
import { isStricter, type PermissionRule } from '../personas/permissions.ts';
import type { McpServer } from '../personas/persona.ts';
import { globMatches } from '../tools/patterns.ts';
import { ID_PATTERN } from '../wire/ids.ts';
import { cutText } from '../wire/unicode-text.ts';
import type { CommandProblem } from './commands.ts';
import type { MessageBody } from './crew-commands.ts';
import { DEFAULT_QUOTAS, Quotas } from './quotas.ts';
import { type NamedThing, namesIn } from './request-names.ts';

/** Providers for which a host may have a key. `openai-chat` uses the key of `openai`. */
export const KEY_OWNERS = ['openai', 'openai-compatible', 'anthropic', 'google'] as const;
/** A provider of {@link KEY_OWNERS}. */
export type KeyOwner = (typeof KEY_OWNERS)[number];

const ABSOLUTE_PATH = /^(\/|\\\\|[A-Za-z]:[\\/])/;
const Folder = z.string().max(4_096).regex(ABSOLUTE_PATH, { error: 'must be an absolute path on the host' });
const Variable = z
  .string()
  .max(128)
  .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, { error: 'must be the name of an environment variable, without $ and braces' });
const OriginText = z.string().refine(isOrigin, {
  error: 'must be an origin such as https://models.example.org or http://127.0.0.1:8080, without a path',
});

/** An origin that requests may name. `key_of`: the provider whose key the host may send to the origin. */
const AllowedOrigin = z.union([
  OriginText.transform((origin) => ({ origin: new URL(origin).origin })),
  z
    .strictObject({ origin: OriginText, key_of: z.enum(KEY_OWNERS).optional() })
    .transform(({ origin, key_of }) => ({ origin: new URL(origin).origin, ...(key_of ? { key_of } : {}) })),
]);
/** An origin, and the provider whose key may be sent there. */
export interface AllowedOrigin {
  readonly origin: string;
  readonly key_of?: KeyOwner | undefined;
}

/** The possible effects of a message from another session, from the weakest to the strongest. */
const SESSION_MESSAGES = ['followup', 'steer', 'interrupt'] as const;

const SECTIONS = {
  /**
   * Folders in which the roots of sessions, and the files of scripted and replay models, must lie. Default: the working
   * folder of the host.
   */
  roots: z.array(Folder).max(64).optional(),
  /**
   * Environment variables of the host that MCP servers of requests may reference as `${NAME}`, in headers only if the
   * origin of the server is in `origins`. Default: none.
   */
  variables: z.array(Variable).max(256).optional(),
  /**
   * Origins of providers and MCP servers that may belong to a private network and get variables of the host; with
   * `key_of` also a key. In addition to the default origins of providers and those in the environment of the host.
   * Default: none.
   */
  origins: z.array(AllowedOrigin).max(256).optional(),
  /**
   * MCP servers that requests may contain: none, HTTP addresses, or also commands, which run with the rights of the
   * host. Default: none.
   */
  mcp_servers: z.enum(['none', 'http', 'any']).optional(),
  /** Globs on `provider/name`. Default: all. */
  models: z.array(z.string().min(1).max(1_024)).max(256).optional(),
  /** Whether a request may contain a persona, or only the name of one. Default: any. */
  personas: z.enum(['named', 'any']).optional(),
  /**
   * The most permissive action for `run_command` in the rules of a request. Every session to which this section applies
   * is limited to it, whatever its rules say ({@link commandCeiling}). Default: ask.
   */
  run_command: z.enum(['deny', 'ask', 'allow']).optional(),
  /** Whether a start may replace built-in tools by tools of the bus. Default: none. */
  stand_ins: z.enum(['none', 'any']).optional(),
  /**
   * The most a message from another session may do: wait for the end of the current work (`followup`), wait for the
   * next model request (`steer`), or interrupt. It applies to every session of the host, even if the bus is trusted.
   * Default: `steer`, which never ends a pending approval.
   */
  session_messages: z.enum(SESSION_MESSAGES).optional(),
  /**
   * Quotas of a tenant. They apply to every sender, even if the bus is trusted. docs/operations/set-quotas.md explains
   * them.
   */
  quotas: Quotas.optional(),
} as const;

/** The sections that differ between tenants. */
export const PolicySections = z.strictObject(SECTIONS);
export type PolicySections = z.infer<typeof PolicySections>;

/** A host's policy, in the form of its file. */
export const HostPolicy = z.strictObject({
  ...SECTIONS,
  /**
   * Whether senders on the bus may configure the host. If true, the sections apply only to restricted commands
   * (`Cox-Restricted`, which gateways set), and to the sessions that restricted commands started. `session_messages`
   * and `quotas` always apply. Default: true for `cox up` and `cox run`, false for `cox serve sessions`.
   */
  trust_bus: z.boolean().optional(),
  /** Sections of single tenants. Each replaces the section of the same name above. */
  tenants: z
    .record(z.string().regex(ID_PATTERN), PolicySections)
    .refine((tenants) => Object.keys(tenants).length <= 1_024, { error: 'may have at most 1024 tenants' })
    .optional(),
});
export type HostPolicy = z.infer<typeof HostPolicy>;
/** A policy before defaults. */
export type HostPolicyInput = z.input<typeof HostPolicy>;

/** Facts about a host that complete its policy. */
export interface HostSurroundings {
  /** Absolute path of the working folder: relative names of scripts start there, and it is the default of `roots`. */
  readonly folder: string;
  /** Origins of the providers, and those in the environment of the host. */
  readonly origins: readonly AllowedOrigin[];
  /** The default of `trust_bus`. */
  readonly trustsBus: boolean;
  /** Real paths of the host's own files, in addition to {@link SYSTEM_PATHS}. */
  readonly ownPaths?: readonly RefusedPath[] | undefined;
}

/** A file or folder that no session may open, whatever its root is. */
export interface RefusedPath {
  readonly path: string;
  /** Folders below it that sessions may open. */
  readonly except?: readonly string[] | undefined;
}

/** File systems of the kernel: they expose the environment and the memory of the host's process. */
export const SYSTEM_PATHS: readonly RefusedPath[] = [{ path: '/proc' }, { path: '/sys' }, { path: '/dev' }];

/** A policy for one tenant and one kind of sender, with defaults filled in. `any`: no restriction. */
export interface HostRules {
  readonly folder: string;
  readonly roots: readonly string[] | 'any';
  readonly variables: readonly string[] | 'any';
  /** `any`: the host's key may be sent to any origin of a request. */
  readonly origins: readonly AllowedOrigin[] | 'any';
  readonly mcp_servers: 'none' | 'http' | 'any';
  readonly models: readonly string[];
  readonly personas: 'named' | 'any';
  readonly run_command: 'deny' | 'ask' | 'allow';
  readonly stand_ins: 'none' | 'any';
  readonly session_messages: (typeof SESSION_MESSAGES)[number];
  /** The same for every sender of the tenant. */
  readonly quotas: Quotas;
  /** Files that no session may open, and no model may be read from; the same for every sender. */
  readonly refused: readonly RefusedPath[];
}

/**
 * The rules for a sender who may configure the host, on a host without a policy. {@link rulesFor} replaces the quotas,
 * the limit of messages and the refused files by those of the policy.
 */
export const OPEN_RULES: HostRules = {
  folder: '/',
  roots: 'any',
  variables: 'any',
  origins: 'any',
  mcp_servers: 'any',
  models: ['*'],
  personas: 'any',
  run_command: 'allow',
  stand_ins: 'any',
  session_messages: 'steer',
  quotas: DEFAULT_QUOTAS,
  refused: SYSTEM_PATHS,
};

/**
 * The rules for one tenant.
 * @param restricted whether the sections apply although the bus is trusted: the sender is restricted, or started the
 *   session as a restricted sender.
 */
export function rulesFor(policy: HostPolicy, host: HostSurroundings, tenant: string, restricted: boolean): HostRules {
  const { trust_bus = host.trustsBus, tenants, ...shared } = policy;
  const own = tenants && Object.hasOwn(tenants, tenant) ? tenants[tenant] : undefined;
  const sections = { ...shared, ...own };
  const { session_messages = 'steer', quotas = DEFAULT_QUOTAS } = sections;
  const { folder, ownPaths = [] } = host;
  const always = { folder, session_messages, quotas, refused: [...SYSTEM_PATHS, ...ownPaths] };
  if (trust_bus && !restricted) return { ...OPEN_RULES, ...always };
  return {
    ...always,
    roots: sections.roots ?? [folder],
    variables: sections.variables ?? [],
    origins: [...host.origins, ...(sections.origins ?? [])],
    mcp_servers: sections.mcp_servers ?? 'none',
    models: sections.models ?? ['*'],
    personas: sections.personas ?? 'any',
    run_command: sections.run_command ?? 'ask',
    stand_ins: sections.stand_ins ?? 'none',
  };
}

/**
 * The problem with the first thing in a `start` or `prompt`, or with the mode of a `message`, that the rules do not
 * allow; null if all are allowed, and for other verbs. The body has passed its schema. Paths are compared as text;
 * adapters check the file system.
 */
export function checkRequest(rules: HostRules, verb: string, body: object): CommandProblem | null {
  if (verb === 'message') return messageProblem(rules, (body as MessageBody).mode);
  for (const named of namesIn(verb, body)) {
    const problem = problemWith(rules, named);
    if (problem) return problem;
  }
  return null;
}

function problemWith(rules: HostRules, named: NamedThing): CommandProblem | null {
  switch (named.section) {
    case 'roots':
      return rootProblem(rules, named.root, named.field);
    case 'models':
      return modelProblem(rules, named.model, named.field);
    case 'origins':
      return originProblem(rules, named);
    case 'mcp_servers':
      return serverProblem(rules, named.server, named.field, named.ofOtherSession);
    case 'personas':
      return rules.personas === 'any'
        ? null
        : notAllowed(named.field, 'a request may only name a persona', 'personas is "named"; name one that is served');
    case 'run_command':
      return commandProblem(rules, named);
    case 'stand_ins':
      return rules.stand_ins === 'any'
        ? null
        : notAllowed(named.field, 'tools of the bus may not stand in for built-in ones', 'stand_ins is "none"');
  }
}

/** Why a session may not have this root; null if it may. */
export function rootProblem({ roots }: Pick<HostRules, 'roots'>, root: string, field = 'root'): CommandProblem | null {
  if (roots === 'any' || roots.some((folder) => isBelow(folder, root))) return null;
  const what = `${cutText(root, 256)} is outside the folders of this host’s policy`;
  return notAllowed(field, what, `roots allows ${namesInMessage(roots)}; use a folder there, or add this one to roots`);
}

/**
 * Why a session may not use this model; null if it may. Files of scripted and replay models must lie below the roots.
 */
export function modelProblem(rules: HostRules, model: string, field = 'model'): CommandProblem | null {
  const shown = cutText(model, 256);
  if (!rules.models.some((glob) => globMatches(glob, model)))
    return notAllowed(
      field,
      `${shown} is not among the models of this host’s policy`,
      `models allows ${namesInMessage(rules.models)}`,
    );
  const file = /^(?:scripted|replay)\/(.*)$/s.exec(model)?.[1];
  if (file === undefined || rules.roots === 'any') return null;
  const path = ABSOLUTE_PATH.test(file) ? file : `${rules.folder}/${file}`;
  if (rules.roots.some((folder) => isBelow(folder, path))) return null;
  return notAllowed(
    field,
    path === file
      ? `${shown} is outside the folders of this host’s policy`
      : `${shown} begins at the working folder of the host, which is outside the folders of its policy`,
    `roots allows ${namesInMessage(rules.roots)}; use a file there, by its absolute path`,
  );
}

function originProblem(
  { origins }: HostRules,
  { field, url, provider, ofOtherSession }: Extract<NamedThing, { section: 'origins' }>,
): CommandProblem | null {
  if (origins === 'any' || isAllowedOrigin(origins, url)) return null;
  const { origin } = new URL(url);
  const policy = 'add it to origins, with key_of if it is to get a key of this host';
  if (ofOtherSession)
    return notAllowed(field, `${origin} is not listed, and the session may have been started with more rights`, policy);
  if (provider !== undefined && provider !== 'openai-compatible')
    return notAllowed(field, `${origin} gets no key of this host, and ${provider} needs one`, policy);
  return isNumericOrLocal(url) ? notAllowed(field, `${origin} may be an address of a private network`, policy) : null;
}

/**
 * Why a session may not use this MCP server; null if it may. Whether a host name is in a private network is checked
 * only at its DNS lookup.
 * @param ofOtherSession the request changes or forks an existing session, which may have more rights than the request.
 */
export function serverProblem(
  rules: HostRules,
  server: McpServer,
  field: string,
  ofOtherSession = false,
): CommandProblem | null {
  const { mcp_servers: allowed, origins } = rules;
  if (allowed === 'none')
    return notAllowed(
      field,
      'a request may not bring MCP servers',
      'mcp_servers is "none"; set it to "http" to allow addresses',
    );
  if ('command' in server) {
    if (allowed === 'http')
      return notAllowed(`${field}.command`, 'a request may not run a program on the host', 'mcp_servers is "http"');
    return variableProblem(rules, server.env, `${field}.env`);
  }
  const { origin } = new URL(server.url);
  if (origins !== 'any' && !isAllowedOrigin(origins, server.url) && (ofOtherSession || isNumericOrLocal(server.url)))
    return notAllowed(
      `${field}.url`,
      `${origin} is not listed, and may be an address of a private network`,
      'add it to origins',
    );
  const problem = variableProblem(rules, server.headers, `${field}.headers`);
  if (problem || origins === 'any' || isAllowedOrigin(origins, server.url)) return problem;
  if (!Object.values(server.headers ?? {}).some((value) => value.search(VARIABLE_REFERENCE) >= 0)) return null;
  return notAllowed(`${field}.url`, `${origin} is not listed, and gets no variable of this host`, 'add it to origins');
}

/**
 * `${NAME}` or `${NAME:-default}`, with the name and the default as groups. Adapters expand exactly what is checked
 * here. A default ends before the next `${`, so that a search takes linear time.
 */
export const VARIABLE_REFERENCE = /\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-((?:[^$}]|\$(?!\{))*))?\}/g;

function variableProblem(
  rules: HostRules,
  values: Readonly<Record<string, string>> = {},
  at: string,
): CommandProblem | null {
  for (const [member, value] of Object.entries(values)) {
    for (const [, name = ''] of value.matchAll(VARIABLE_REFERENCE)) {
      if (mayExpand(rules, name)) continue;
      const shown = cutText(name, 128);
      const policy = `variables allows ${namesInMessage(rules.variables as readonly string[])}; add ${shown} there`;
      return notAllowed(`${at}.${member}`, `a request may not read the variable ${shown} of the host`, policy);
    }
  }
  return null;
}

/** Whether `${name}` may be replaced by the value of the host's variable. */
export function mayExpand({ variables }: Pick<HostRules, 'variables'>, name: string): boolean {
  return variables === 'any' || variables.includes(name);
}

/** Why a message to another session may not have this mode; null if it may. */
export function messageProblem(
  { session_messages: most }: Pick<HostRules, 'session_messages'>,
  mode: MessageMode,
): CommandProblem | null {
  const allowed = MessageMode.options.filter((one) => rankOf(one) <= rankOf(most));
  if (allowed.includes(mode)) return null;
  return notAllowed(
    'mode',
    `a message to another session may not have the mode ${mode}`,
    `session_messages is "${most}" and allows ${namesInMessage(allowed)}`,
  );
}

// While a run is active, a prompt waits like a follow-up.
function rankOf(mode: MessageMode): number {
  return SESSION_MESSAGES.indexOf(mode === 'prompt' ? 'followup' : mode);
}

/**
 * The problem with the first rule of a request that allows `run_command` more than the policy does; null without one.
 */
function commandProblem(
  { run_command: most }: HostRules,
  { field, permissions: { rules } }: Extract<NamedThing, { section: 'run_command' }>,
): CommandProblem | null {
  for (const [at, rule] of rules.entries()) {
    if (!globMatches(rule.tool, 'run_command')) continue;
    if (isStricter(most, rule.action))
      return notAllowed(
        `${field}.rules.${at}.action`,
        `a rule of a request may not ${rule.action === 'ask' ? 'ask about' : 'allow'} run_command`,
        `run_command is "${most}"; put a rule {tool: run_command, action: ${most}} before this one`,
      );
    // Later rules cannot apply to `run_command`.
    if (rule.when === undefined) return null;
  }
  return null;
}

/** The rules that force an approval of `run_command`, or deny it; empty if the policy leaves it to the session. */
export function commandCeiling({ run_command: most }: Pick<HostRules, 'run_command'>): PermissionRule[] {
  if (most === 'allow') return [];
  return [
    { tool: 'run_command', action: most },
    { tool: '*', action: 'allow' },
  ];
}

/** Whether a list of allowed origins has the origin of an address. */
export function isAllowedOrigin(origins: readonly AllowedOrigin[], url: string): boolean {
  const { origin } = new URL(url);
  return origins.some((allowed) => allowed.origin === origin);
}

/** Whether the host's key of a provider may be sent to an address. */
export function mayHaveKey({ origins }: Pick<HostRules, 'origins'>, url: string, owner: KeyOwner): boolean {
  if (origins === 'any') return true;
  const { origin } = new URL(url);
  return origins.some((allowed) => allowed.origin === origin && allowed.key_of === owner);
}

/** Whether a real path belongs to the host itself: no session opens it. */
export function isRefused({ refused }: Pick<HostRules, 'refused'>, path: string): boolean {
  return refused.some(
    ({ path: own, except = [] }) => isBelow(own, path) && !except.some((folder) => isBelow(folder, path)),
  );
}

/** Whether `path` is `folder` itself or lies below it, both absolute and compared as text, with `.` and `..` resolved. */
export function isBelow(folder: string, path: string): boolean {
  if (!ABSOLUTE_PATH.test(path) || path.includes('\0')) return false;
  // A path of Windows is below no folder of another system.
  if (path.startsWith('/') !== folder.startsWith('/')) return false;
  const [above, below] = [segmentsOf(folder), segmentsOf(path)];
  return above.length <= below.length && above.every((segment, at) => segment === below[at]);
}

function segmentsOf(path: string): string[] {
  const segments: string[] = [];
  const separator = path.startsWith('/') ? '/' : /[\\/]/;
  for (const segment of path.split(separator)) {
    if (segment === '' || segment === '.') continue;
    if (segment === '..') segments.pop();
    else segments.push(segment);
  }
  return segments;
}

/**
 * Whether the host name of an address is an IP address or a name of this machine, so that no DNS lookup will check it.
 * WHATWG URLs normalize IPv4.
 */
function isNumericOrLocal(url: string): boolean {
  const { hostname } = new URL(url);
  return /^(\[|\d+(\.\d+){3}$)/.test(hostname) || /(^|\.)localhost\.?$/.test(hostname);
}

function isOrigin(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, origin, username, password, pathname, search, hash } = new URL(text);
  const isBare = username === '' && password === '' && pathname === '/' && search === '' && hash === '';
  return /^https?:$/.test(protocol) && isBare && origin !== 'null';
}

const NAMED_MAX = 8;

function namesInMessage(names: readonly string[]): string {
  if (names.length === 0) return 'none';
  const shown = names.slice(0, NAMED_MAX).join(', ');
  return names.length > NAMED_MAX ? `${shown} and ${names.length - NAMED_MAX} more` : shown;
}

/**
 * The rejection: `<field>: <what>; policy.<line>` if the line begins with `<section> is` or `<section> allows`;
 * otherwise `<field>: <what>; policy: <line>`.
 */
function notAllowed(field: string, what: string, line: string): CommandProblem {
  const policy = /^[a-z_]+ (allows|is) /.test(line) ? `policy.${line}` : `policy: ${line}`;
  // Senders choose names of headers and hosts. Logs and receipts need a bound.
  const shown = cutText(field, 256);
  return { code: 'not_allowed_by_policy', message: `${shown}: ${cutText(what, 512)}; ${policy}`, field: shown };
}
