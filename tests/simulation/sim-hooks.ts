/** The hooks of a simulation: quick, slow, dead or talking nonsense. */
import type { Clock, HookReply, HookRequest, Hooks } from '@coxswain/ports';
import type { HookPoint, HookTable, JsonObject } from '@coxswain/protocol';
import type { FaultRates } from './generator.ts';
import type { Random } from './random.ts';

/** See the top of the file. */
export class SimHooks implements Hooks {
  readonly #table: HookTable;
  readonly #faults: () => FaultRates;
  readonly #clock: Clock;
  readonly #random: Random;

  constructor(table: HookTable, faults: () => FaultRates, clock: Clock, random: Random) {
    this.#table = table;
    this.#faults = faults;
    this.#clock = clock;
    this.#random = random;
  }

  table(): HookTable {
    return this.#table;
  }

  async ask({ registration, payload, onFeedback }: HookRequest, signal: AbortSignal): Promise<HookReply> {
    const { hookSlow, hookDead } = this.#faults();
    const random = this.#random;
    if (random.chance(0.1)) onFeedback(`${registration.id} has a word`);
    if (random.chance(hookDead)) return new Promise(() => {});
    await this.#clock.sleep(random.chance(hookSlow) ? random.between(0, 3_000) : random.between(0, 5), signal);
    if (random.chance(0.05)) return { status: 'failed', code: 'hook_threw', message: 'it threw' };
    if (random.chance(0.05)) return { status: 'returned', raw: { nonsense: true } };
    return { status: 'returned', raw: verdict(registration.point, payload, random) };
  }
}

function verdict(point: HookPoint, payload: JsonObject, random: Random): unknown {
  switch (point) {
    case 'user_prompt_submit':
      // A blocked prompt ends its run, and what could have happened in it.
      return random.chance(payload.origin === 'prompt' ? 0.05 : 0.3) ? { block: true, reason: 'no' } : true;
    case 'pre_suspend':
      return random.chance(0.4) ? { block: true, reason: 'stay awake' } : true;
    case 'pre_compact':
      return random.chance(0.2) ? { block: true, reason: 'not now' } : true;
    case 'PreToolUse':
      return random.pick([
        undefined,
        undefined,
        undefined,
        { deny: 'not this' },
        { args: { n: 5 } },
        { args: { n: 'x' } },
      ]);
    case 'gate_tool_calls':
      return (payload.calls as unknown[]).map(() => ({ allow: random.chance(0.8) }));
    case 'permission_asked':
      return random.pick([undefined, { decision: 'allow' }, { decision: 'deny' }, { decision: 'ask' }]);
    case 'PostToolUse':
      return random.pick([undefined, undefined, { is_error: true }]);
    default:
      return undefined;
  }
}
