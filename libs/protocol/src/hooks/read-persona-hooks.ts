/**
 * Reads the hooks of a persona as registrations of its sessions, and checks rules of a persona beyond its schema.
 *
 * OWNHOOK-1  A persona's hooks are called in its own sessions only, in an instance that serves the pinned version, and
 *     before those of hosts and services.
 * OWNHOOK-2  They can never allow a call. What a persona may do without a person is defined by its permissions, which
 *     the starter and the delegating session bound.
 */

import { Persona } from '../personas/persona.ts';
import { globMatches, parseHookPattern } from '../tools/patterns.ts';
import { nearestWord } from '../wire/nearest-word.ts';
import { readStrictly, type SchemaProblem, type StrictlyRead } from '../wire/schema-problems.ts';
import { HOOK_CATALOGUE } from './hook-points.ts';
import { type HookRegistration, registeredTwice } from './hook-registrations.ts';
import { parseReturn } from './parse-return.ts';
import type { PersonaHook } from './persona-hooks.ts';
import { readRegistration } from './read-registration.ts';
import type { HookFailure, Verdict } from './verdicts.ts';

/** One parsed hook of a persona. */
export interface ReadPersonaHook {
  readonly registration: HookRegistration;
  /** The called handler; undefined without one. */
  readonly handler: string | undefined;
  /** The path of the hook in the definition. */
  readonly path: readonly (string | number)[];
  readonly handlerPath: readonly (string | number)[];
}

type Hooked = Pick<Persona, 'name' | 'hooks' | 'on_finish' | 'steps'>;
/** The members of a persona that have rules beyond the schema. */
type CheckedMembers = Hooked & Pick<Persona, 'handoffs'>;

/** Reads a persona definition, and checks its hooks and hand-offs. Never throws. */
export function readPersona(value: unknown): StrictlyRead<Persona> {
  const read = readStrictly(Persona, value);
  const problem = read.ok ? personaProblem(read.data) : null;
  return problem === null ? read : { ok: false, problems: [problem] };
}

/** The problem of a persona that fits its schema, or null. */
export function personaProblem(persona: CheckedMembers): SchemaProblem | null {
  const read = readPersonaHooks(persona, '0');
  return 'problem' in read ? read.problem : handoffsProblem(persona);
}

// Not a rule of the schema: definitions that sessions pinned earlier must stay readable.
function handoffsProblem({ name, handoffs = [] }: CheckedMembers): SchemaProblem | null {
  const refuse = (index: number, words: string): SchemaProblem => ({ path: ['handoffs', index], kind: 'rule', words });
  const itself = handoffs.indexOf(name);
  if (itself >= 0) return refuse(itself, 'a persona cannot hand off to itself');
  const twice = handoffs.findIndex((to, index) => handoffs.indexOf(to) < index);
  return twice < 0 ? null : refuse(twice, `${handoffs[twice]} is named twice`);
}

/**
 * Parses the hooks of a persona.
 * @param version the version of the persona, which its sessions pin.
 * @returns the hooks in order of declaration, `on_finish` first; or the first problem.
 */
export function readPersonaHooks(
  persona: Hooked,
  version: string,
): { readonly hooks: readonly ReadPersonaHook[] } | { readonly problem: SchemaProblem } {
  const hooks: ReadPersonaHook[] = [];
  for (const [path, hook] of declared(persona)) {
    const read = readOne(persona, version, path, hook);
    if ('problem' in read) return read;
    hooks.push(read);
    if (registeredTwice(hooks.map(({ registration }) => registration))) {
      const own = read.registration.id.slice(persona.name.length + 1);
      const said = `another hook of ${persona.name} at ${read.registration.point} has the id ${own}`;
      return { problem: { path: [...path, 'id'], kind: 'rule', words: said } };
    }
  }
  return { hooks };
}

/** The failure if a persona's own hook answers `allow` or `ask` at `permission_asked` (OWNHOOK-2); otherwise null. */
export function beyondPersona(verdict: Verdict): HookFailure | null {
  if (verdict.kind !== 'decision' || verdict.decision === 'deny') return null;
  const message = `permission_asked: a persona's own hook may deny, and not ${verdict.decision}`;
  return { code: 'verdict_not_allowed', message };
}

/** The priority of `on_finish`: it is called before the persona's other hooks at its point. */
const FIRST = -1_000;

function declared({ hooks = [], on_finish }: Hooked): [path: (string | number)[], hook: PersonaHook][] {
  const finish = typeof on_finish === 'string' ? { handler: on_finish } : on_finish;
  return [
    ...(finish
      ? [
          [['on_finish'], { id: 'on_finish', priority: FIRST, ...finish, event: 'post_finish' }] as [
            string[],
            PersonaHook,
          ],
        ]
      : []),
    ...hooks.map((hook, index): [(string | number)[], PersonaHook] => [['hooks', index], hook]),
  ];
}

function readOne(
  { name, steps = [], on_finish }: Hooked,
  version: string,
  path: readonly (string | number)[],
  { event, handler, id, ...written }: PersonaHook,
): ReadPersonaHook | { readonly problem: SchemaProblem } {
  const refuse = (field: string | null, words: string): { readonly problem: SchemaProblem } => ({
    problem: { path: field === null ? path : [...path, field], kind: 'rule', words },
  });
  const { deny, max_output, returns, step } = written;
  const isBare = path[0] === 'on_finish' && typeof on_finish === 'string';
  if (handler === undefined && deny === undefined && max_output === undefined && returns === undefined)
    return refuse(
      null,
      `it has no handler: give handler${path[0] === 'on_finish' ? ' or returns' : ', returns, deny or max_output'}`,
    );
  if (handler !== undefined && (deny !== undefined || returns !== undefined))
    return refuse(
      'handler',
      `${deny === undefined ? 'returns' : 'deny'} answers before anybody is asked: give one of them`,
    );
  const bare = handler === undefined && max_output !== undefined && returns === undefined ? { no_handler: true } : {};
  const given = Object.fromEntries(Object.entries(written).filter(([, value]) => value !== undefined));
  const own = id ?? `${/^\w{0,48}/.exec(event)?.[0]}-${Number(path[1] ?? 0) + 1}`;
  const read = readRegistration({ ...given, ...bare, id: own, point: event, persona: name });
  if (!read.ok) {
    const { field, message } = read.problem;
    const words = message.replace(/^[\w.]+: /, '');
    // The percentage is only valid in the name of the point.
    if (field === 'pct') return refuse('event', `the percentage of ${event} ${words}`);
    return refuse(field === 'point' ? 'event' : field, words);
  }
  const { registration } = read;
  const { target, surfaces } = HOOK_CATALOGUE[registration.point];
  const pattern = parseHookPattern(registration.pattern);
  const isGlob = typeof pattern !== 'string' && pattern.kind === 'glob';
  // A hook that can never match is a mistake.
  if (isGlob && target.startsWith('persona') && !globMatches(pattern.glob, name)) {
    const meant = surfaces.includes('step') ? `; of a step say step: ${pattern.glob}` : '';
    return refuse('pattern', `at ${event} a glob is held against the persona, and that is always ${name} here${meant}`);
  }
  if (step !== undefined && !steps.some((one) => globMatches(step, one.name))) {
    const names = steps.map((one) => one.name);
    const meant = nearestWord(step, names);
    const hint = meant === null ? `; there are: ${names.join(', ') || 'none'}` : `; did you mean "${meant}"?`;
    return refuse('step', `${name} declares no step ${step}${hint}`);
  }
  if (returns !== undefined) {
    const parsed = parseReturn(registration.point, returns);
    const beyond = 'verdict' in parsed ? beyondPersona(parsed.verdict) : null;
    if (beyond) return refuse('returns', beyond.message);
  }
  return {
    registration: { ...registration, id: `${name}:${registration.id}`, persona_version: version },
    handler,
    path,
    handlerPath: isBare ? path : [...path, 'handler'],
  };
}
