/** `cox approval rules`. */
import { connectNats, keepRememberedRule, listRememberedRules, withConnection } from '@coxswain/adapter-nats';
import { CommandRejectedError, printable } from '@coxswain/client';
import {
  bindingProblem,
  describeBinding,
  describeRule,
  ID_PATTERN,
  type RememberedRule,
  type StoredRule,
} from '@coxswain/protocol';
import type { LoadedSession } from '@coxswain/session';
import { findSession, type OpenBus, reachedAt, withBus } from '../../instance/mod.ts';
import { CliError, type CommandRun, EXIT, type ExitCode, type Invocation, usageError } from '../../line/mod.ts';
import { ago, standardStreams, table } from '../../terminal/mod.ts';

const RECEIPT_TIMEOUT_MS = 15_000;
/** A deleted session cannot revoke its rule. */
const GONE: ReadonlySet<string> = new Set(['session_not_found', 'session_deleted']);

/** Lists the remembered decisions of a session or a persona, or revokes one of them. */
export const run: CommandRun = (invocation) => {
  const { flags, args } = invocation;
  const persona = flags.text('persona');
  const [session] = args;
  if ((session === undefined) === (persona === undefined))
    throw usageError('cox approval rules takes a session, or --persona NAME');
  if (persona !== undefined && !ID_PATTERN.test(persona))
    throw usageError('--persona takes the name of a persona here');
  const revoke = flags.text('remove');
  return withBus(invocation, false, async (bus) => {
    if (persona !== undefined) return ofPersona(invocation, bus, persona, revoke);
    const found = await findSession(bus.client, session as string);
    const { foldedState } = await import('../../instance/fold-status.ts');
    if (revoke !== undefined) {
      const { remembered } = (await foldedState(bus, found)).state.context;
      return revokeIn(invocation, bus, choose(revoke, remembered));
    }
    const { context } = (await foldedState(bus, found)).state;
    return list(invocation, await rulesOfSession(bus, context));
  });
};

type SessionContext = LoadedSession['actor']['state']['context'];

/** A rule in the list. */
interface ListedRule extends StoredRule {
  /**
   * Why the rule does not apply to the session; null if it applies. Absent in the list of a persona, which has no
   * session.
   */
  readonly problem?: string | null;
}

/** The session's own rules, its persona's rules in the current run, and its persona's rules that do not apply to it. */
async function rulesOfSession(bus: OpenBus, context: SessionContext): Promise<ListedRule[]> {
  const own: readonly StoredRule[] = context.remembered.map(({ revoked, ...rule }) => ({ rule, revoked }));
  const isNew = (known: readonly StoredRule[], { id, session }: RememberedRule) =>
    !known.some(({ rule }) => rule.id === id && rule.session === session);
  const known = [...own, ...context.persona_rules.filter((rule) => isNew(own, rule)).map((rule) => ({ rule }))];
  const { currentBinding } = await import('@coxswain/session');
  const holder = currentBinding(context);
  const listed = (stored: StoredRule): ListedRule => ({
    ...stored,
    problem:
      holder === null
        ? 'an earlier version started the session, and recorded no identity of its persona'
        : bindingProblem(stored.rule, holder),
  });
  if (holder === null) return known.map(listed);
  const stored = await storedRules(bus, holder.persona).catch((error: Error) => {
    standardStreams.err(`the stored rules of ${holder.persona} cannot be read: ${error.message}\n`);
    return [];
  });
  const others = stored.filter(({ rule, revoked }) => !revoked && isNew(known, rule)).map(listed);
  // Leaves out rules that were made after the run started: they apply to the next run.
  return [...known.map(listed), ...others.filter(({ problem }) => problem !== null)];
}

function storedRules(bus: OpenBus, persona: string): Promise<readonly StoredRule[]> {
  return withConnection({ ...reachedAt(bus), name: 'cox' }, (nc) =>
    listRememberedRules(nc, bus.client.tenant, persona),
  );
}

async function ofPersona(
  invocation: Invocation,
  bus: OpenBus,
  persona: string,
  revoke: string | undefined,
): Promise<ExitCode> {
  const { tenant } = bus.client;
  const nc = await connectNats({ ...reachedAt(bus), name: 'cox' });
  try {
    const stored = await listRememberedRules(nc, tenant, persona);
    if (revoke === undefined) return list(invocation, stored);
    const rule = choose(
      revoke,
      stored.flatMap((one) => (one.revoked ? [] : [one.rule])),
    );
    try {
      return await revokeIn(invocation, bus, rule);
    } catch (error) {
      if (!(error instanceof CommandRejectedError) || !GONE.has(error.code)) throw error;
      await keepRememberedRule(nc, tenant, { rule, revoked: { at: new Date().toISOString() } });
      return printRevoked(invocation, rule);
    }
  } finally {
    await nc.close();
  }
}

/** The rule whose id starts with the given text. Throws if none or several match. */
function choose<R extends { readonly id: string }>(given: string, rules: readonly R[]): R {
  const matching = rules.filter(({ id }) => id === given || (given !== '' && id.startsWith(given)));
  const [rule, another] = matching;
  const exact = matching.find(({ id }) => id === given);
  if (exact) return exact;
  if (!rule) throw new CliError(EXIT.error, 'unknown_command_id', `unknown_command_id: no rule ${given} is remembered`);
  if (another) throw usageError(`"${given}" matches ${matching.map(({ id }) => id).join(', ')}; give more of the id`);
  return rule;
}

/**
 * Revokes a rule through the session that made it. A rule of a persona is then also revoked for the persona's later
 * sessions.
 */
async function revokeIn(invocation: Invocation, bus: OpenBus, rule: RememberedRule): Promise<ExitCode> {
  await bus.client.session(rule.session).revoke(rule.id, {
    wait: bus.hosted ? 'accepted' : 'stored',
    timeoutMs: RECEIPT_TIMEOUT_MS,
    signal: bus.gone,
  });
  return printRevoked(invocation, rule);
}

function printRevoked({ flags }: Invocation, rule: RememberedRule): ExitCode {
  if (flags.on('json')) standardStreams.out(`${JSON.stringify({ type: 'rule_revoked', id: rule.id })}\n`);
  else standardStreams.out(`revoked: ${printable(describeRule(rule))}\n`);
  return EXIT.ok;
}

function list({ flags }: Invocation, rules: readonly ListedRule[]): ExitCode {
  if (flags.on('json')) {
    for (const { rule, revoked, problem } of rules) {
      const applies = problem === undefined ? {} : { applies: problem === null, ...(problem ? { problem } : {}) };
      const line = { ...rule, description: describeRule(rule), ...applies, ...(revoked ? { revoked } : {}) };
      standardStreams.out(`${JSON.stringify(line)}\n`);
    }
    return EXIT.ok;
  }
  const rows = rules.map(({ rule, revoked, problem }) => [
    rule.id,
    revoked ? 'revoked' : problem ? 'not applied' : rule.scope,
    printable(rule.actor?.name ?? ''),
    ago(rule.at),
    printable(`${describeRule(rule)} (${problem ?? describeBinding(rule)})`),
  ]);
  if (rows.length > 0) standardStreams.out(table(rows));
  else standardStreams.err('no decision is remembered\n');
  return EXIT.ok;
}
