/** The rules of a policy document, and their decision about a call. */
import { posix } from 'node:path';

/** The decision about a call. */
export type Effect = 'allow' | 'deny' | 'ask';

/** One rule. It matches if all of its members match. */
export interface Rule {
  /** Names of tools, or a prefix followed by `*`. */
  readonly tools: readonly string[];
  /** Arguments that must be paths inside a folder. */
  readonly under?: Readonly<Record<string, string>>;
  /** Arguments that must be one of these texts. */
  readonly is?: Readonly<Record<string, readonly string[]>>;
  readonly effect: Effect;
  readonly reason?: string;
}

/** A policy document. */
export interface Policy {
  readonly rules: readonly Rule[];
  readonly default: Effect;
}

const EFFECTS: readonly unknown[] = ['allow', 'deny', 'ask'];
const KEYS: readonly string[] = ['tools', 'under', 'is', 'effect', 'reason'];

/** Reads a document. @throws if it is invalid: a misspelt condition must not make a rule match more calls. */
export function readPolicy(document: unknown): Policy {
  const { rules, default: otherwise } = document as Policy;
  if (!EFFECTS.includes(otherwise)) throw new Error(`policy: default must be one of ${EFFECTS.join(', ')}`);
  for (const [index, rule] of rules.entries()) {
    const unknown = Object.keys(rule).find((key) => !KEYS.includes(key));
    if (unknown) throw new Error(`policy: rules[${index}]: there is no such key: ${unknown}`);
    if (!EFFECTS.includes(rule.effect)) throw new Error(`policy: rules[${index}].effect: one of ${EFFECTS.join(', ')}`);
    if (!Array.isArray(rule.tools) || !rule.tools.every((name) => /^[\w-]*\*?$/.test(name)))
      throw new Error(`policy: rules[${index}].tools: a list of names, or of what they begin with and *`);
  }
  return { rules, default: otherwise };
}

/** The decision of a policy about a call, and the reason. */
export function decide(
  policy: Policy,
  tool: string,
  args: unknown,
): { readonly effect: Effect; readonly reason: string } {
  const index = policy.rules.findIndex((rule) => fits(rule, tool, args));
  const rule = policy.rules[index];
  if (!rule) return { effect: policy.default, reason: `policy: no rule is for ${tool}` };
  return { effect: rule.effect, reason: `policy, rule ${index + 1}: ${rule.reason ?? rule.effect}` };
}

function fits({ tools, under = {}, is = {} }: Rule, tool: string, args: unknown): boolean {
  const text = (name: string): string | undefined => {
    const value = (args as Record<string, unknown> | null)?.[name];
    return typeof value === 'string' ? value : undefined;
  };
  return (
    tools.some((name) => matches(name, tool)) &&
    Object.entries(under).every(([name, folder]) => isInside(text(name), folder)) &&
    Object.entries(is).every(([name, texts]) => texts.includes(text(name) ?? ''))
  );
}

// Normalized before the comparison: docs/../secrets is not in docs.
function isInside(path: string | undefined, folder: string): boolean {
  return path !== undefined && posix.normalize(path).startsWith(`${posix.normalize(folder)}/`);
}

function matches(pattern: string, name: string): boolean {
  return pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern;
}
