/**
 * Remembered rules: a person decides about one call and all later similar ones. Similar is narrow: the same path, the
 * same command or one that starts with it, or the same arguments.
 *
 * REMEMBER-1  A remembered rule only answers a question: it never overrules a rule that denies, and never asks by
 *     itself.
 * REMEMBER-2  If several rules match, one that denies wins.
 * REMEMBER-3  Only a remembered command of plain words also matches commands that start with it. To allow one, the
 *     rest must be plain words too: no shell syntax, no option, no path outside of the folder. A denial matches any
 *     rest that does not continue the last word: after `rm a` also `rm a b` and `rm a;b`, but not `rm a/b`.
 * REMEMBER-4  A rule applies only to the root and the agent definition of its creation (`RuleBinding`). Stores keep the
 *     rules of each tenant apart. With another definition or root, the person is asked again.
 */
import * as z from 'zod';
import { BOUNDS } from '../wire/bounds.ts';
import { canonicalJson } from '../wire/canonical-json.ts';
import { type Json, JsonObject } from '../wire/json.ts';
import { StoredActor } from './actor.ts';

/** The lifetime of a remembered decision: its session, or all later runs of its persona. */
export const RememberScope = z.enum(['session', 'persona']);
export type RememberScope = z.infer<typeof RememberScope>;

/** Which calls of its tool a remembered rule matches. */
export const RememberedMatch = z.discriminatedUnion('kind', [
  /** Calls with exactly this `path`, as spelled in the remembered call. Other arguments are ignored. */
  z.strictObject({ kind: z.literal('path'), path: z.string() }),
  /** Calls of this command in this folder; with `prefix` also of commands that start with it (REMEMBER-3). */
  z.strictObject({ kind: z.literal('command'), command: z.string(), cwd: z.string(), prefix: z.boolean() }),
  /** Calls with exactly these arguments. */
  z.strictObject({ kind: z.literal('args'), args: JsonObject }),
]);
export type RememberedMatch = z.infer<typeof RememberedMatch>;

/**
 * The source of a session's agent definition (persona). `host`: a file of the host, by name. `served`: a service that
 * runs the persona. `request`: the body of a start. `built_in`: the default definition.
 */
export const PersonaSource = z.enum(['host', 'served', 'request', 'built_in']);
export type PersonaSource = z.infer<typeof PersonaSource>;

/** The identity of an agent definition: its source and content. */
export const PersonaIdentity = z.strictObject({
  source: PersonaSource,
  /** SHA-256 of the definition's canonical JSON, hex. */
  fingerprint: z.string(),
});
export type PersonaIdentity = z.infer<typeof PersonaIdentity>;

/** The binding of a remembered rule (REMEMBER-4). A rule applies to sessions with an equal binding. */
export const RuleBinding = PersonaIdentity.extend({
  /** The persona's name. */
  persona: z.string(),
  /** The absolute path of the root folder. */
  root: z.string(),
});
export type RuleBinding = z.infer<typeof RuleBinding>;

/** A remembered rule. */
export const RememberedRule = RuleBinding.extend({
  /** The id of the `approve` command that created the rule. Revocation uses this id. */
  id: z.string(),
  /** The session of its creation. */
  session: z.string(),
  scope: RememberScope,
  tool: z.string(),
  match: RememberedMatch,
  action: z.enum(['allow', 'deny']),
  actor: StoredActor.optional(),
  reason: z.string().optional(),
  /** ISO 8601. */
  at: z.string(),
});
export type RememberedRule = z.infer<typeof RememberedRule>;

/**
 * A remembered rule of a persona, stored under its own key of a bucket. Revoked rules stay stored, so that an older
 * write cannot restore them.
 */
export const StoredRule = z.strictObject({
  rule: RememberedRule,
  revoked: z.strictObject({ actor: StoredActor.optional(), at: z.string() }).optional(),
});
export type StoredRule = z.infer<typeof StoredRule>;

/**
 * Built-in tools with one argument that identifies the target, and the name of this argument. The meaning of other
 * tools' arguments is unknown here.
 */
const BY_ARGUMENT: Readonly<Record<string, 'path' | 'command'>> = {
  read_file: 'path',
  list_files: 'path',
  search_files: 'path',
  write_file: 'path',
  append_file: 'path',
  edit_file: 'path',
  notify_file_edited: 'path',
  run_command: 'command',
};

const PLAIN = /^[A-Za-z0-9_@%+=:,./ -]+$/;

/**
 * The match for calls similar to this one.
 * @returns the match, or a sentence that says why the call cannot be remembered.
 */
export function matchOf(tool: string, args: Json): RememberedMatch | string {
  if (typeof args !== 'object' || args === null || Array.isArray(args))
    return 'its arguments are not an object, so no later call can match it';
  const match = byArgument(tool, args) ?? { kind: 'args' as const, args };
  const bytes = new TextEncoder().encode(canonicalJson(match as unknown as Json)).length;
  return bytes <= BOUNDS.rememberedMatchMaxBytes
    ? match
    : `the rule would have ${bytes} bytes; the limit is ${BOUNDS.rememberedMatchMaxBytes}`;
}

function byArgument(tool: string, args: JsonObject): RememberedMatch | null {
  const by = Object.hasOwn(BY_ARGUMENT, tool) ? BY_ARGUMENT[tool] : undefined;
  if (by === 'path' && typeof args.path === 'string') return { kind: 'path', path: args.path };
  if (by !== 'command' || typeof args.command !== 'string') return null;
  const command = args.command.trim();
  return { kind: 'command', command, cwd: folderOf(args), prefix: PLAIN.test(command) };
}

function folderOf(args: JsonObject): string {
  return typeof args.cwd === 'string' ? args.cwd : '.';
}

/** Whether a remembered rule matches a call. */
export function isRemembered(
  rule: Pick<RememberedRule, 'tool' | 'match' | 'action'>,
  tool: string,
  args: Json,
): boolean {
  if (rule.tool !== tool || typeof args !== 'object' || args === null || Array.isArray(args)) return false;
  const { match, action } = rule;
  switch (match.kind) {
    case 'path':
      return args.path === match.path;
    case 'command':
      return (
        typeof args.command === 'string' &&
        folderOf(args) === match.cwd &&
        isLikeCommand(match, args.command.trim(), action)
      );
    case 'args':
      return canonicalJson(args) === canonicalJson(match.args);
  }
}

function isLikeCommand(
  { command: known, prefix }: { readonly command: string; readonly prefix: boolean },
  command: string,
  action: 'allow' | 'deny',
): boolean {
  if (command === known) return true;
  if (!prefix || !command.startsWith(known)) return false;
  const rest = command.slice(known.length);
  if (action === 'deny') return !/^[A-Za-z0-9_@%+=:,./-]/.test(rest);
  return rest.startsWith(' ') && PLAIN.test(rest) && rest.trim().split(/ +/).every(staysInside);
}

const staysInside = (word: string) =>
  !word.startsWith('-') && !word.startsWith('/') && !/(^|[/=:,])\.\.($|[/:,])/.test(word) && !/[=:,]\//.test(word);

/** A one-line description of a remembered rule for people. */
export function describeRule({ action, tool, match }: Pick<RememberedRule, 'action' | 'tool' | 'match'>): string {
  switch (match.kind) {
    case 'path':
      return `${action} ${tool} of ${JSON.stringify(match.path)}`;
    case 'command': {
      const folder = match.cwd === '.' ? '' : ` in ${JSON.stringify(match.cwd)}`;
      const more = match.prefix ? ', also with more words' : '';
      return `${action} ${tool} ${JSON.stringify(match.command)}${folder}${more}`;
    }
    case 'args':
      return `${action} ${tool} with exactly ${JSON.stringify(match.args)}`;
  }
}

/**
 * Why a rule does not apply to a session (REMEMBER-4).
 * @param holder the session's persona and root.
 * @returns the difference as the end of a sentence, or null if the rule applies.
 */
export function bindingProblem(rule: RuleBinding, holder: RuleBinding): string | null {
  if (rule.persona !== holder.persona) return `it was made for the persona ${rule.persona}, not ${holder.persona}`;
  if (rule.root !== holder.root) return `it was made in the root ${rule.root}, not ${holder.root}`;
  if (rule.source !== holder.source)
    return `it was made for the persona ${rule.persona} ${FROM[rule.source]}, not ${FROM[holder.source]}`;
  return rule.fingerprint === holder.fingerprint
    ? null
    : `the definition of ${rule.persona} has changed: ${shortFingerprint(rule)} then, ${shortFingerprint(holder)} now`;
}

const FROM: Readonly<Record<PersonaSource, string>> = {
  host: 'of the host',
  served: 'of a persona service',
  request: 'of a request',
  built_in: 'that is built in',
};

const shortFingerprint = ({ fingerprint }: PersonaIdentity) => fingerprint.slice(0, 12);

/** A one-line description of a rule's binding for people. */
export function describeBinding(holder: RuleBinding): string {
  return `${holder.persona} ${FROM[holder.source]}, ${shortFingerprint(holder)}, in ${holder.root}`;
}

/**
 * The rule that decides a call: the first that matches and denies (REMEMBER-2), otherwise the first that matches;
 * undefined without one.
 * @param rules the rules with the binding of the session, in any order.
 */
export function rememberedFor(rules: readonly RememberedRule[], tool: string, args: Json): RememberedRule | undefined {
  const matching = rules.filter((rule) => isRemembered(rule, tool, args));
  return matching.find(({ action }) => action === 'deny') ?? matching[0];
}
