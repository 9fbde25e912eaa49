/** Hand-offs of a simulated session: two personas, calls by which each gives the session to the other, or to nobody. */
import type { CallPart, JsonObject } from '@coxswain/protocol';
import type { PlannedAnswer } from './generator.ts';
import type { Random } from './random.ts';

/** The prompt of each persona, by which its models are told apart. */
export const PROMPTS: Readonly<Record<string, string>> = { sim: 'You are simulated.', relief: 'You relieve.' };

/** What a session says and is started with. */
interface Planned {
  readonly answers: PlannedAnswer[];
  readonly start: JsonObject;
}

/**
 * Puts hand-offs into what was planned, or leaves it as it is.
 * @param isCounted answers have tokens, so that budgets mean something.
 */
export function planHandoffs(random: Random, { answers, start }: Planned, isCounted: boolean): Planned {
  if (random.chance(0.7)) return { answers, start };
  const limits = {
    ...(random.chance(0.3) ? { max_turns: random.pick([1, 3]) } : {}),
    ...(isCounted && random.chance(0.5) ? { tokens: random.pick([40, 200]) } : {}),
  };
  const steps = random.chance(0.3)
    ? { steps: [{ name: 'relieve', prompt: 'Do it.', error_boundary: random.pick(['fail', 'continue']) }] }
    : {};
  const relief: JsonObject = {
    name: 'relief',
    prompt: PROMPTS.relief as string,
    handoffs: ['sim', 'nobody'],
    ...(Object.keys(limits).length > 0 ? { limits } : {}),
    ...steps,
    ...(random.chance(0.2) ? { stop_when: [{ tool: 'look' }] } : {}),
  };
  return {
    answers: answers.map((answer, index) => (random.chance(0.45) ? handingOff(random, answer, index) : answer)),
    start: {
      ...start,
      persona: { ...(start.persona as JsonObject), handoffs: ['relief', 'nobody'] },
      personas: [relief],
    },
  };
}

function handingOff(random: Random, answer: PlannedAnswer, index: number): PlannedAnswer {
  const calls = [...answer.calls];
  const many = random.chance(0.15) ? 2 : 1;
  for (let i = 0; i < many; i++) {
    const to = random.weighted([
      [5, 'relief'],
      [4, 'sim'],
      [1, 'nobody'],
      [1, 'stranger'],
    ] as const);
    const part: CallPart = {
      type: 'call',
      call_id: `a${index}h${i}`,
      tool: 'handoff',
      args: { to, brief: `over to ${to}, ${index}.${i}` },
    };
    calls.splice(random.int(calls.length + 1), 0, part);
  }
  return { ...answer, calls };
}
