/** The usage of a session, run by run, collected from its records. */
import {
  addUsage,
  type CamelCased,
  costNanoUsd,
  fromWire,
  type JournalRecord,
  type PinnedPrice,
  type SessionEvent,
  type StopReason,
  toWire,
  Usage,
  UsageReportNames,
} from '@coxswain/protocol';

/** The usage of one run, in camelCase. */
export type RunUsage = CamelCased<WireRunUsage>;
/** The usage of one persona, in camelCase. */
export type PersonaUsage = CamelCased<WirePersonaUsage>;
/** The usage of a session, in camelCase. */
export type UsageReport = CamelCased<WireUsageReport>;

/** The usage of one run. */
export interface WireRunUsage {
  readonly run: number;
  readonly persona: string | null;
  readonly model: string | null;
  readonly turns: number;
  readonly usage: Usage;
  /** In USD; null if a price is unknown. */
  readonly cost_usd: number | null;
  /** Null during the run. */
  readonly stop_reason: StopReason | null;
}

/** The usage of one persona in its turns, over all runs of a session. */
export interface WirePersonaUsage {
  readonly persona: string;
  /** The model of its newest turn. */
  readonly model: string | null;
  readonly turns: number;
  readonly usage: Usage;
  /** In USD; null if a price is unknown. */
  readonly cost_usd: number | null;
}

/** The usage of a session. */
export interface WireUsageReport {
  /** The persona of the newest run, or the one that it was handed over to. Null before the first run. */
  readonly persona: string | null;
  readonly model: string | null;
  readonly runs: readonly WireRunUsage[];
  /**
   * In the order of their first turns. A turn belongs to the persona that started it, even if it hands the session
   * over.
   */
  readonly personas: readonly WirePersonaUsage[];
  readonly usage: Usage;
  readonly cost_usd: number | null;
}

/** Tokens and their cost in nano-USD: sums of fractions drift, whole numbers do not. */
interface Spent {
  readonly usage: Usage;
  readonly cost: number | null;
}

/** Takes a session's records in order. */
export class UsageCollector {
  readonly #runs: Omit<WireRunUsage, 'usage' | 'cost_usd'>[] = [];
  /** The usage of ended turns, by run. */
  readonly #over: Spent[] = [];
  /** The usage of the open turn: a turn that waits for its calls may be open for days. */
  #open: Spent = NOTHING;
  #price: PinnedPrice | null = null;
  /** The persona of the session, and that of the open turn. */
  #persona: string | null = null;
  #model: string | null = null;
  #turnOf: string | null = null;
  /** The turns of each persona, and the usage of those that have ended. */
  readonly #personas = new Map<
    string,
    { readonly model: string | null; readonly turns: number; readonly over: Spent }
  >();

  /** Takes one record. */
  add(record: JournalRecord): void {
    for (const event of record.events) this.#add(event);
  }

  #add(event: SessionEvent): void {
    const last = this.#runs.length - 1;
    const run = this.#runs[last];
    if (event.type === 'prices_changed') this.#price = event.price;
    if (event.type === 'persona_changed') {
      this.#persona = event.provision.persona.name;
      this.#model = event.provision.model.name;
    }
    if (event.type === 'agent_start') {
      const { persona, model } = event;
      this.#persona = persona ?? this.#persona;
      this.#model = model ?? this.#model;
      this.#runs.push({ run: event.run, persona, model, turns: 0, stop_reason: null });
      this.#over.push(NOTHING);
      this.#open = NOTHING;
    }
    if (!run) return;
    const before = this.#over[last] ?? NOTHING;
    switch (event.type) {
      case 'turn_start':
        this.#runs[last] = { ...run, turns: event.turn };
        this.#turnOf = this.#persona;
        this.#count(1, NOTHING, this.#model);
        break;
      case 'message_complete':
      case 'context_overflowed':
      case 'compaction_done':
      case 'compaction_skipped':
        if (event.usage) this.#open = both(this.#open, this.#paid(event.usage));
        break;
      case 'turn_end': {
        const { turn, usage, cost_usd } = event;
        this.#runs[last] = { ...run, turns: turn };
        const spent = { usage, cost: cost_usd === undefined ? null : nano(cost_usd) };
        this.#over[last] = both(before, spent);
        this.#count(0, spent);
        this.#open = NOTHING;
        break;
      }
      case 'agent_end':
        this.#runs[last] = { ...run, turns: event.turns, stop_reason: event.stop_reason };
        break;
    }
  }

  #count(turns: number, spent: Spent, model?: string | null): void {
    if (this.#turnOf === null) return;
    const before = this.#personas.get(this.#turnOf) ?? { model: null, turns: 0, over: NOTHING };
    const { model: last } = before;
    this.#personas.set(this.#turnOf, {
      model: model === undefined ? last : model,
      turns: before.turns + turns,
      over: both(before.over, spent),
    });
  }

  #paid(usage: Usage): Spent {
    return { usage, cost: this.#price ? costNanoUsd(this.#price, usage) : null };
  }

  /** The usage so far, including the answers of the open turn. */
  get report(): UsageReport {
    return fromWire(UsageReportNames, this.wireReport as never) as unknown as UsageReport;
  }

  /** The report in its wire form. */
  get wireReport(): WireUsageReport {
    const spent = this.#over.map((one, index) => (index === this.#over.length - 1 ? both(one, this.#open) : one));
    const runs = this.#runs.map((run, index) => ({ ...run, ...shown(spent[index] ?? NOTHING) }));
    const personas = [...this.#personas].map(([persona, { model, turns, over }]) => ({
      persona,
      model,
      turns,
      ...shown(persona === this.#turnOf ? both(over, this.#open) : over),
    }));
    return { persona: this.#persona, model: this.#model, runs, personas, ...shown(spent.reduce(both, NOTHING)) };
  }
}

const NOTHING: Spent = { usage: { input_tokens: 0, output_tokens: 0 }, cost: 0 };
const nano = (sumUsd: number): number => Math.round(sumUsd * 1e9);

function shown({ usage, cost }: Spent): Pick<WireRunUsage, 'usage' | 'cost_usd'> {
  return { usage, cost_usd: cost === null ? null : cost / 1e9 };
}

function both(one: Spent, other: Spent): Spent {
  const usage = addUsage(one.usage, other.usage);
  return { usage, cost: one.cost === null || other.cost === null ? null : one.cost + other.cost };
}

/**
 * Token counts: `inputTokens` and `outputTokens`; the cached and the reasoning tokens among them if the provider
 * reports them.
 */
export type TokenUsage = CamelCased<Usage>;

/** Converts the usage of a record to camelCase. */
export function tokenUsage(usage: Usage): TokenUsage {
  return fromWire(Usage, usage);
}

/** Converts token usage to its wire form. */
export function usageToWire(usage: TokenUsage): Usage {
  const form = toWire(Usage, usage);
  if (!form.ok) throw new Error(`the usage has no form on the wire: ${form.words}`);
  return form.value as Usage;
}
