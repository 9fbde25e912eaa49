/**
 * Remembered rules: what a person who decides about one call has said of all later ones like it. `like` is narrow: the
 * same path, the same command or one that begins with it, or the same arguments.
 *
 * M1  A remembered rule answers a question and nothing else: it never overrules a rule that denies, nor asks where none did.
 * M2  Of several that match, one that denies wins.
 * M3  What only begins with a remembered command is allowed with plain further words alone: nothing that a shell would make
 *     another command of, no option, and no path that leads out of the folder. Denied it is whatever follows.
 */
import { z } from 'zod';
import { BOUNDS } from './bounds.ts';
import { canonicalJson } from './canonical-json.ts';
import { type Json, JsonObject } from './json.ts';

const Actor = z.strictObject({ name: z.string(), verified: z.boolean() });

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

/** A remembered rule. */
export const RememberedRule = z.strictObject({
  /** The id of the `approve` that made it: what revokes it. */
  id: z.string(),
  /** The session in which it was made. */
  session: z.string(),
  scope: RememberScope,
  persona: z.string(),
  tool: z.string(),
  match: RememberedMatch,
  action: z.enum(['allow', 'deny']),
  actor: Actor.optional(),
  reason: z.string().optional(),
  /** ISO 8601. */
  at: z.string(),
});
/** See {@link RememberedRule}. */
export type RememberedRule = z.infer<typeof RememberedRule>;

/** The rules of a persona, as a bucket keeps each under a key of its own. Revoked ones stay, so that nobody brings them back. */
export const StoredRule = z.strictObject({
  rule: RememberedRule,
  revoked: z.strictObject({ actor: Actor.optional(), at: z.string() }).optional(),
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
    return 'its arguments are no object, so nothing can be like it';
  const match = byArgument(tool, args) ?? { kind: 'args' as const, args };
  const bytes = new TextEncoder().encode(canonicalJson(match as unknown as Json)).length;
  return bytes <= BOUNDS.rememberedMatchMaxBytes
    ? match
    : `what would be remembered has ${bytes} bytes, at most ${BOUNDS.rememberedMatchMaxBytes} are kept`;
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
      const more = match.prefix ? ', also with further words' : '';
      return `${action} ${tool} ${JSON.stringify(match.command)}${folder}${more}`;
    }
    case 'args':
      return `${action} ${tool} with exactly ${JSON.stringify(match.args)}`;
  }
}

/**
 * The rule that answers for a call: one that denies, if there is one (M2); else the first that allows.
 * @param rules those that hold, in any order.
 */
export function rememberedFor(rules: readonly RememberedRule[], tool: string, args: Json): RememberedRule | undefined {
  const matching = rules.filter((rule) => isRemembered(rule, tool, args));
  return matching.find(({ action }) => action === 'deny') ?? matching[0];
}
