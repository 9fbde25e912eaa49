/** What a session has used, run by run, put together from its records. */
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

/** What one run has used, with the names of TypeScript. */
export type RunUsage = CamelCased<WireRunUsage>;
/** What one persona has used, with the names of TypeScript. */
export type PersonaUsage = CamelCased<WirePersonaUsage>;
/** What a session has used, with the names of TypeScript. */
export type UsageReport = CamelCased<WireUsageReport>;

/** What one run has used. */
export interface WireRunUsage {
  readonly run: number;
  readonly persona: string | null;
  readonly model: string | null;
  readonly turns: number;
  readonly usage: Usage;
  /** USD; null where the price of anything in it is not known. */
  readonly cost_usd: number | null;
  /** Null while it goes on. */
  readonly stop_reason: StopReason | null;
}

/** What one persona of a session has used in its turns, in all runs. */
export interface WirePersonaUsage {
  readonly persona: string;
  /** The one of its newest turn. */
  readonly model: string | null;
  readonly turns: number;
  readonly usage: Usage;
  /** USD; null where the price of anything in it is not known. */
  readonly cost_usd: number | null;
}

/** What a session has used. */
export interface WireUsageReport {
  /** Persona of the newest run, or the one that took over. Null before the first run. */
  readonly persona: string | null;
  readonly model: string | null;
  readonly runs: readonly WireRunUsage[];
  /** In the order in which they had it first. A turn is the persona's that began it, also where it hands the session over. */
  readonly personas: readonly WirePersonaUsage[];
  readonly usage: Usage;
  readonly cost_usd: number | null;
}

/** Tokens, and what they cost in nano-USD: sums of fractions of a dollar drift, whole numbers do not. */
interface Spent {
  readonly usage: Usage;
  readonly cost: number | null;
}

/** Takes a session's records in order. */
export class UsageCollector {
  readonly #runs: Omit<WireRunUsage, 'usage' | 'cost_usd'>[] = [];
  /** By run, what its turns have used that are over. */
  readonly #over: Spent[] = [];
  /** What the open turn has used so far: one that waits for its calls may be open for days. */
  #open: Spent = NOTHING;
  #price: PinnedPrice | null = null;
  /** Who has the session, and whose the open turn is. */
  #persona: string | null = null;
  #model: string | null = null;
  #turnOf: string | null = null;
  /** By persona: its turns, and what those have used that are over. */
  readonly #personas = new Map<
    string,
    { readonly model: string | null; readonly turns: number; readonly over: Spent }
  >();

  /** Takes one record in. */
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

  /** What has been used so far, the answers of the open turn among it. */
  get report(): UsageReport {
    return fromWire(UsageReportNames, this.wireReport as never) as unknown as UsageReport;
  }

  /** The same in the form of the wire. */
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

/** Tokens: `inputTokens`, `outputTokens`, and of these the cached and the reasoning ones where the provider reports them. */
export type TokenUsage = CamelCased<Usage>;

/** The usage of a record with the names of TypeScript. */
export function tokenUsage(usage: Usage): TokenUsage {
  return fromWire(Usage, usage);
}

/** The same in the form of the wire. */
export function usageToWire(usage: TokenUsage): Usage {
  const form = toWire(Usage, usage);
  if (!form.ok) throw new Error(`the usage has no form on the wire: ${form.words}`);
  return form.value as Usage;
}
