/** Chance from a seed: the same seed, the same draws. */

/** A source of draws. */
export interface Random {
  /** From 0 up to, not including, 1. */
  float(): number;
  /** A whole number from 0 up to, not including, `n`. */
  int(n: number): number;
  /** A number between two. */
  between(low: number, high: number): number;
  /** Whether something of this probability happens. */
  chance(probability: number): boolean;
  /** One of them. */
  pick<T>(list: readonly T[]): T;
  /** One of them, by weight. */
  weighted<T>(list: readonly (readonly [weight: number, value: T])[]): T;
  /** A source of its own, so that draws made for one purpose do not move those made for another. */
  fork(purpose: string): Random;
}

/** Draws from a seed: mulberry32 (public domain, Tommy Ettinger), 32 bits of state. */
export function createRandom(seed: number): Random {
  let state = seed >>> 0;
  const float = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
  const int = (n: number) => Math.floor(float() * n);
  return {
    float,
    int,
    between: (low, high) => low + float() * (high - low),
    chance: (probability) => float() < probability,
    pick: <T>(list: readonly T[]) => list[int(list.length)] as T,
    weighted: <T>(list: readonly (readonly [weight: number, value: T])[]) => {
      let left = float() * list.reduce((sum, [weight]) => sum + weight, 0);
      for (const [weight, value] of list) {
        left -= weight;
        if (left < 0) return value;
      }
      return (list.at(-1) as readonly [number, T])[1];
    },
    fork: (purpose) => createRandom(mixed(seed, purpose)),
  };
}

// FNV-1a over the purpose, begun at the seed.
function mixed(seed: number, purpose: string): number {
  let hash = (0x811c9dc5 ^ seed) >>> 0;
  for (let i = 0; i < purpose.length; i++) hash = Math.imul(hash ^ purpose.charCodeAt(i), 0x01000193) >>> 0;
  return hash;
}
