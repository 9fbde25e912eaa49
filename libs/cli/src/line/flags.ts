/** The flags of a command line, as given. */
import { usageError } from './cli-error.ts';
import { UNIT_MS } from './duration-units.ts';

/** One given flag; `true` for a flag without a value. */
export interface GivenFlag {
  readonly name: string;
  readonly value: string | true;
}

/**
 * Typed access to flags that were checked against their command. Methods throw CliError with exit code 2 for invalid
 * values.
 */
export class Flags {
  readonly #given: readonly GivenFlag[];

  constructor(given: readonly GivenFlag[]) {
    this.#given = given;
  }

  /** Whether the flag was given. */
  on(name: string): boolean {
    return this.#given.some((flag) => flag.name === name);
  }

  /** The value of the flag; undefined if it was not given. */
  text(name: string): string | undefined {
    const value = this.#given.find((flag) => flag.name === name)?.value;
    return typeof value === 'string' ? value : undefined;
  }

  /** A whole number within bounds; undefined if the flag was not given. */
  whole(name: string, bounds: { readonly min: number; readonly max: number }): number | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
    if (!(value >= bounds.min && value <= bounds.max)) {
      throw usageError(`--${name} takes a whole number from ${bounds.min} to ${bounds.max}, not "${text}"`);
    }
    return value;
  }

  /** An amount within bounds; undefined if the flag was not given. */
  amount(name: string, bounds: { readonly min: number; readonly max: number }): number | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    const value = /^(\d{1,15}(\.\d{1,9})?|\.\d{1,9})$/.test(text) ? Number(text) : Number.NaN;
    if (!(value >= bounds.min && value <= bounds.max)) {
      throw usageError(`--${name} takes a sum from ${bounds.min} to ${bounds.max}, for example 0.50, not "${text}"`);
    }
    return value;
  }

  /** A duration such as 500ms, 90s, 5m, 2h or 1d, in ms; undefined if the flag was not given. */
  duration(name: string, bounds: { readonly minMs: number; readonly maxMs: number }): number | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    const [, number, unit] = /^(\d{1,12}(?:\.\d{1,3})?)(ms|s|m|h|d)$/.exec(text) ?? [];
    const ms = number === undefined ? Number.NaN : Math.round(Number(number) * UNIT_MS[unit as keyof typeof UNIT_MS]);
    if (!(ms >= bounds.minMs && ms <= bounds.maxMs)) {
      throw usageError(`--${name} takes a time with its unit, such as 500ms, 90s, 5m, 2h or 1d, not "${text}"`);
    }
    return ms;
  }

  /** One of a few words; undefined if the flag was not given. */
  oneOf<W extends string>(name: string, words: readonly W[]): W | undefined {
    const text = this.text(name);
    if (text === undefined || (words as readonly string[]).includes(text)) return text as W | undefined;
    throw usageError(`--${name} takes ${words.join(' or ')}, not "${text}"`);
  }

  /** The values of these flags in the given order. */
  inOrder<N extends string>(names: readonly N[]): { readonly name: N; readonly value: string }[] {
    return this.#given.filter((flag): flag is { name: N; value: string } =>
      (names as readonly string[]).includes(flag.name),
    );
  }
}
