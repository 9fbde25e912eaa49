/** The hooks of a simulation: their table at a host, and what their functions answer. */
import type { Clock, HookReply, HookRequest, Hooks } from '@coxswain/ports';
import type { HookPoint, HookTable, JsonObject, ServedHookAnswer } from '@coxswain/protocol';
import type { PlannedTable } from './generator.ts';
import type { Random } from './random.ts';
import type { HostAsking } from './served/host-asking.ts';

/** The hooks of one host. Instances of one service answer them. */
export class SimHooks implements Hooks {
  #table: HookTable;
  readonly #changes: readonly PlannedTable[];
  readonly #clock: Clock;
  readonly #asking: HostAsking;

  constructor(table: HookTable, changes: readonly PlannedTable[], clock: Clock, asking: HostAsking) {
    const nowMs = clock.monotonicMs();
    this.#table = changes.findLast(({ atMs }) => atMs <= nowMs)?.table ?? table;
    this.#changes = changes.filter(({ atMs }) => atMs > nowMs);
    this.#clock = clock;
    this.#asking = asking;
  }

  table(): HookTable {
    return this.#table;
  }

  onChange(changed: () => void): () => void {
    const ended = new AbortController();
    for (const { atMs, table } of this.#changes) {
      void this.#clock.sleep(atMs - this.#clock.monotonicMs(), ended.signal).then(() => {
        if (ended.signal.aborted) return;
        this.#table = table;
        changed();
      });
    }
    return () => ended.abort();
  }

  ask(request: HookRequest, signal: AbortSignal): Promise<HookReply> {
    return this.#asking.askHook(request, signal);
  }
}

/** What a function answers, once it does: now and then it throws, or returns nonsense. */
export function hookAnswer(point: HookPoint, payload: JsonObject, random: Random): ServedHookAnswer {
  if (random.chance(0.05)) return { status: 'failed', code: 'hook_threw', message: 'it threw' };
  if (random.chance(0.05)) return { status: 'returned', raw: { nonsense: true } };
  return { status: 'returned', raw: withMore(point, verdict(point, payload, random), random) };
}

const ADVISORY: readonly HookPoint[] = ['loop_checkpoint', 'permission_replied', 'post_turn', 'file_edited'];

/** Beside what it says, a hook may remind; one that has nothing to say may have begun a job. */
function withMore(point: HookPoint, said: unknown, random: Random): unknown {
  if (said === undefined && ADVISORY.includes(point) && random.chance(0.2))
    return { job: { status: random.pick(['queued', 'succeeded']), job_id: `job-${random.int(20)}` } };
  if (!random.chance(0.15)) return said;
  const key = random.chance(0.5) ? { dedupe_key: 'sim' } : {};
  const reminder = { body: `remember ${random.int(1_000)}`, ...key, ttl_turns: 1 + random.int(3) };
  return Object.fromEntries([['reminder', reminder], ...(said === undefined ? [] : [['then', said]])]);
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
    case 'PreStep':
      return random.pick([undefined, undefined, { args: { prompt: 'Do less.' } }, { args: {} }, { deny: 'not yet' }]);
    case 'PostStep':
      return random.pick([undefined, undefined, { output: 'enough' }, { deny: 'too little' }]);
    default:
      return undefined;
  }
}
