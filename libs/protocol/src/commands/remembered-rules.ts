/**
 * Remembered rules: what a person who decides about one call has said of all later ones like it. `like` is narrow: the
 * same path, the same command or one that begins with it, or the same arguments.
 *
 * M1  A remembered rule answers a question and nothing else: it never overrules a rule that denies, nor asks where none did.
 * M2  Of several that match, one that denies wins.
 * M3  What only begins with a remembered command is allowed with plain further words alone: nothing that a shell would make
 *     another command of, no option, and no path that leads out of the folder. Denied it is whatever follows.
 * M4  A rule holds only for the root and the agent definition under which it was made (`RuleHolder`). Stores keep the rules
 *     of each tenant apart. Where the definition or the root differs, the question is asked again.
 */
import * as z from 'zod';
import { BOUNDS } from '../wire/bounds.ts';
import { canonicalJson } from '../wire/canonical-json.ts';
import { type Json, JsonObject } from '../wire/json.ts';
import { StoredActor } from './actor.ts';

/** How long a decision is remembered: in its session, or in every later run of its persona. */
export const RememberScope = z.enum(['session', 'persona']);
/** See {@link RememberScope}. */
export type RememberScope = z.infer<typeof RememberScope>;

/** Which calls of its tool a remembered rule is about. */
export const RememberedMatch = z.discriminatedUnion('kind', [
  /** Exactly this path, as the call spells it; whatever else the call says. */
  z.strictObject({ kind: z.literal('path'), path: z.string() }),
  /** This command; and those that begin with it, where it is plain (M3). In this folder. */
  z.strictObject({ kind: z.literal('command'), command: z.string(), cwd: z.string(), prefix: z.boolean() }),
  /** Exactly these arguments. */
  z.strictObject({ kind: z.literal('args'), args: JsonObject }),
]);
/** See {@link RememberedMatch}. */
export type RememberedMatch = z.infer<typeof RememberedMatch>;

/**
 * Where a session has its agent definition (persona) from. `host`: the host's files, by name. `served`: a service that runs
 * the persona. `request`: the body of a start. `built_in`: the definition for sessions that name none.
 */
export const PersonaSource = z.enum(['host', 'served', 'request', 'built_in']);
/** See {@link PersonaSource}. */
export type PersonaSource = z.infer<typeof PersonaSource>;

/** What an agent definition is, apart from its name. */
export const PersonaIdentity = z.strictObject({
  source: PersonaSource,
  /** SHA-256 of the definition's canonical JSON, in hex. */
  fingerprint: z.string(),
});
/** See {@link PersonaIdentity}. */
export type PersonaIdentity = z.infer<typeof PersonaIdentity>;

/** What a remembered rule is bound to (M4): a session is the holder of the rules whose binding is its own. */
export const RuleHolder = PersonaIdentity.extend({
  /** The persona's name. */
  persona: z.string(),
  /** The absolute path of the root folder. */
  root: z.string(),
});
/** See {@link RuleHolder}. */
export type RuleHolder = z.infer<typeof RuleHolder>;

/** A remembered rule. */
export const RememberedRule = RuleHolder.extend({
  /** The id of the `approve` that made it: what revokes it. */
  id: z.string(),
  /** The session in which it was made. */
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
/** See {@link RememberedRule}. */
export type RememberedRule = z.infer<typeof RememberedRule>;

/**
 * A remembered rule of a persona, stored under its own key of a bucket. Revoked rules stay stored, so that they cannot
 * be restored by an older write.
 */
export const StoredRule = z.strictObject({
  rule: RememberedRule,
  revoked: z.strictObject({ actor: StoredActor.optional(), at: z.string() }).optional(),
});
/** See {@link StoredRule}. */
export type StoredRule = z.infer<typeof StoredRule>;

/** The built-in tools of which one argument says what they touch. Of others nobody here knows what the rest of it means. */
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
 * Which later calls are like this one.
 * @returns the match, or a sentence that says why this call cannot be remembered.
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

/** Whether a remembered rule is about a call. */
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

/** What a remembered rule says, in a line for people. */
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
 * Why a rule does not hold for a session (M4).
 * @param holder the session's persona and root.
 * @returns the difference as the end of a sentence, or null where the rule holds.
 */
export function bindingProblem(rule: RuleHolder, holder: RuleHolder): string | null {
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

/** What a rule is bound to, in a line for people. */
export function describeHolder(holder: RuleHolder): string {
  return `${holder.persona} ${FROM[holder.source]}, ${shortFingerprint(holder)}, in ${holder.root}`;
}

/**
 * The rule that answers for a call: one that denies, if there is one (M2); else the first that allows.
 * @param rules those that hold, in any order.
 */
export function rememberedFor(rules: readonly RememberedRule[], tool: string, args: Json): RememberedRule | undefined {
  const matching = rules.filter((rule) => isRemembered(rule, tool, args));
  return matching.find(({ action }) => action === 'deny') ?? matching[0];
}
