/** What the processes of the hook service do: they answer soon, late, never, or nonsense. */
import { RunningWork } from '@coxswain/bus';
import { HookArgs, type ReceivedQuestion, type ServedHookAnswer, TenantId } from '@coxswain/protocol';
import type { FaultRates } from '../generator.ts';
import type { Random } from '../random.ts';
import { hookAnswer } from '../sim-hooks.ts';
import type { ToolWorld } from '../sim-tools.ts';
import { type ServedProcess, type ServedWork, workClock } from './served-process.ts';

/** The name of the one service of all hooks. */
export const HOOK_SERVICE = 'sim';

/** See the top of the file. */
export class HookWork {
  readonly #world: ToolWorld;
  readonly #faults: () => FaultRates;
  readonly #random: Random;
  readonly #started: (process: ServedProcess, key: string) => void;

  /** @param started is called for each question that a function begins to answer. */
  constructor(
    world: ToolWorld,
    faults: () => FaultRates,
    random: Random,
    started: (process: ServedProcess, key: string) => void,
  ) {
    this.#world = world;
    this.#faults = faults;
    this.#random = random;
    this.#started = started;
  }

  /** The service of one process. */
  serve(process: ServedProcess): readonly ServedWork[] {
    const work = new RunningWork(() => (question) => this.#answer(process, question), {
      tenant: 'default',
      clock: workClock(process.clock),
    });
    return [{ at: { kind: 'hooks', tenant: TenantId.parse('default'), name: HOOK_SERVICE }, work }];
  }

  async #answer(process: ServedProcess, question: ReceivedQuestion): Promise<ServedHookAnswer | null> {
    const { ref, effectId, hook, args, signal, onFeedback } = question;
    const { point, payload, timeout_ms } = HookArgs.parse(args);
    const key = `${ref.tenant}.${ref.sessionId}.${effectId}.${hook}`;
    this.#started(process, key);
    const random = this.#random;
    const { hookSlow, hookDead } = this.#faults();
    if (random.chance(0.1)) onFeedback(`${hook} has a word`);
    const isDead = random.chance(hookDead);
    const isLate = random.chance(hookSlow);
    const takesMs = isLate ? random.between(0, 3_000) : random.between(0, random.chance(0.2) ? 300 : 5);
    this.#world.history.push({
      what: 'hooked',
      instance: process.name,
      key,
      fate: isDead ? 'never' : isLate ? 'late' : 'soon',
    });
    const answersInTime = takesMs < timeout_ms && !isDead;
    await process.clock.sleep(answersInTime ? takesMs : timeout_ms, signal);
    return signal.aborted || !answersInTime ? null : hookAnswer(point, payload, random);
  }
}
