/**
 * Questions to the own hooks of personas: asked where exactly the pinned version is served.
 *
 * K1: Who has taken a question and lives no more answers it no more: another instance is asked, under the same key, as after a
 *     crash of the host. Where none lives nobody has answered.
 */
import type { HookReply, HookRequest, Log } from '@coxswain/ports';
import { subjects, TOOL_LIVENESS, versionToken } from '@coxswain/protocol';
import type { NatsConnection } from '@nats-io/nats-core';
import { createHookQuestions, unavailable } from './ask-hooks.ts';
import { type PersonaPresence, servedAs } from './persona-presence.ts';

/** See the top of the file. */
export interface PersonaHookQuestions {
  /** Contract: never rejects. The caller bounds the time. */
  ask(request: HookRequest, signal: AbortSignal): Promise<HookReply>;
  stop(): void;
}

/** Who serves a persona may fall silent without a word: while something is asked of them that is looked at so often. */
const LOOKED_EVERY_MS = 250;
/** So many instances that went with one question, and it may be the question. */
const ASKED_MAX = 3;

/** Questions on this connection. */
export function createPersonaHookQuestions(
  nc: NatsConnection,
  log: Log,
  presence: Pick<PersonaPresence, 'isServed' | 'living'>,
): PersonaHookQuestions {
  const questions = createHookQuestions(nc, log);
  return {
    stop: () => questions.stop(),
    async ask(request, signal) {
      const { tenant } = request.ref;
      const { persona = '', persona_version: version = '' } = request.registration;
      const served = servedAs(persona, version);
      const isThere = () => presence.isServed(tenant, served) || presence.living(tenant, served).length > 0;
      // A host that was itself held up has beats waiting for it: they are in by the time that the server answers.
      if (!isThere()) await nc.flush().catch(() => undefined);
      if (!isThere()) return unavailable(`nobody serves ${persona} ${version}, where its handlers run`);
      const subject = subjects.personaHooks(tenant, persona, versionToken(version));
      for (let asked = 1; ; asked++) {
        let takenBy: { readonly instance: string; readonly atMs: number; lived: boolean } | null = null;
        let isLost = false;
        const looking = setInterval(() => {
          isLost = takenBy !== null && hasGone(takenBy, presence.living(tenant, served));
          if (isLost || !isThere())
            questions.fail((one) => one === request, `those who serve ${persona} have gone while it was asked`);
        }, LOOKED_EVERY_MS);
        looking.unref();
        const reply = await questions.ask(subject, request, signal, (instance) => {
          takenBy = { instance, atMs: performance.now(), lived: false };
        });
        clearInterval(looking);
        if (!isLost || !isThere() || signal.aborted || asked >= ASKED_MAX) return reply;
      }
    },
  };
}

// One that has just begun may be asked before its first beat is heard.
function hasGone(
  taker: { readonly instance: string; readonly atMs: number; lived: boolean },
  living: readonly string[],
): boolean {
  const lives = living.includes(taker.instance);
  taker.lived ||= lives;
  return !lives && (taker.lived || performance.now() - taker.atMs >= TOOL_LIVENESS.ttlMs);
}
