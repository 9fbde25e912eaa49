import type { HookReply, HookRequest } from '@coxswain/ports';
import { HOOK_LIVENESS } from '@coxswain/protocol';
import { type HookQuestions, unavailable } from './ask-hooks.ts';

/** The information about instances that failover needs. */
export interface HookInstances {
  /** The subject of a question: of one instance, or of the queue group if `instance` is omitted. */
  subject(request: HookRequest, instance?: string): string;
  /**
   * Live instances that can answer a request, in the order in which they are asked: newest heartbeat first, draining
   * last.
   */
  living(request: HookRequest): readonly string[];
  /** Whether an instance is alive or may return: a silent one that has not announced that it leaves. */
  isExpected(request: HookRequest): boolean;
  /** Milliseconds since the last heartbeat of an instance; Infinity for an unknown one. */
  silentMs(request: HookRequest, instance: string): number;
}

/**
 * Failover of hook questions between the instances of a service. A question may be sent several times; the journal
 * records the first answer.
 *
 * F1: The first question goes to the queue group. A live instance answers or confirms within milliseconds that it has
 *     the question. Without either, the instance with the newest heartbeat is asked.
 * F2: An instance that took a question and is silent for the bound of F3 is declared dead, and another one is asked. An
 *     answer of the first instance still counts if it arrives first. If its heartbeats return, it is asked again: it
 *     may have lost its connection, and its answer with it.
 * F3: The bound is a third of the registration's timeout, but at least two heartbeat intervals and at most the lifetime
 *     of a heartbeat. So time is usually left for the next instance. A slow handler whose process sends heartbeats is
 *     not asked twice.
 * F4: "No responders" is not final while an instance is expected: it, or its server, may be restarting. The question is
 *     repeated until the caller's time is over. It is final if each instance has announced that it leaves, or has been
 *     silent for {@link EXPECTED_FOR_MS}.
 */
export interface HookFailover {
  /** Asks a hook. Contract: never rejects. The caller bounds the time. */
  ask(request: HookRequest, signal: AbortSignal): Promise<HookReply>;
}

const LOOKED_EVERY_MS = 100;
/** The pause after "no responders", milliseconds. */
const UNHEARD_PAUSE_MS = 250;
/** Maximum deliveries of a question to instances. A question that crashes its handler must not crash all instances. */
const ASKED_MAX = 4;
/** How long a silent instance that has not announced that it leaves is expected to return, milliseconds. */
export const EXPECTED_FOR_MS = 600_000;
/** Two heartbeat intervals, milliseconds. A shorter silence proves nothing. */
const SILENT_MIN_MS = 2 * HOOK_LIVENESS.beatMs;

/** Creates the failover of the questions of a connection. */
export function createHookFailover(questions: HookQuestions, instances: HookInstances): HookFailover {
  return {
    ask: (request, signal) =>
      new Promise((resolve) => {
        const silentForMs = Math.min(HOOK_LIVENESS.ttlMs, Math.max(SILENT_MIN_MS, request.registration.timeout_ms / 3));
        const tried = new Set<string>();
        const ended = new AbortController();
        let taker: { readonly instance: string; readonly atMs: number; wasSilent: boolean } | null = null;
        let askedMs = 0;
        /** Number of questions that may have reached an instance. */
        let asked = 0;
        let open = 0;
        let timer: NodeJS.Timeout | undefined;

        const settle = (reply: HookReply) => {
          clearInterval(timer);
          signal.removeEventListener('abort', aborted);
          resolve(reply);
          ended.abort();
        };
        const aborted = () => {
          ended.abort(signal.reason);
          if (open === 0) settle(unavailable('the host no longer waits for it'));
        };
        const ask = (instance?: string) => {
          asked++;
          open++;
          askedMs = performance.now();
          taker = null;
          if (instance !== undefined) tried.add(instance);
          const onTaken = (by: string) => {
            tried.add(by);
            taker = { instance: by, atMs: performance.now(), wasSilent: false };
          };
          void questions.ask(instances.subject(request, instance), request, ended.signal, onTaken).then((reply) => {
            open--;
            if (reply === null) asked--;
            const isUnanswered = reply === null || (reply.status === 'failed' && reply.code === 'hook_unavailable');
            // Another open question may still be answered, or another instance may answer.
            const goesOn = isUnanswered && !signal.aborted && !ended.signal.aborted;
            if (goesOn && (open > 0 || askNext())) return;
            if (goesOn && reply === null && instances.isExpected(request)) return;
            settle(reply ?? unavailable('no instance serves it'));
          });
        };
        /** Asks an instance that was not asked yet. @returns whether there was one. */
        const askNext = (): boolean => {
          const next = instances.living(request).find((instance) => !tried.has(instance));
          if (next === undefined || asked >= ASKED_MAX || !questions.isConnected()) return false;
          ask(next);
          return true;
        };
        const look = () => {
          // Without a connection, silence proves nothing about instances.
          if (!questions.isConnected()) return;
          const nowMs = performance.now();
          if (open === 0) {
            if (nowMs - askedMs < UNHEARD_PAUSE_MS) return;
            tried.clear();
            ask();
            return;
          }
          const silentMs = taker
            ? Math.min(instances.silentMs(request, taker.instance), nowMs - taker.atMs)
            : nowMs - askedMs;
          if (taker && silentMs >= SILENT_MIN_MS) taker.wasSilent = true;
          if (silentMs >= silentForMs) askNext();
          else if (taker?.wasSilent && silentMs < SILENT_MIN_MS && asked < ASKED_MAX) ask(taker.instance);
        };
        signal.addEventListener('abort', aborted, { once: true });
        ask();
        timer = setInterval(look, LOOKED_EVERY_MS);
        timer.unref();
        if (signal.aborted) aborted();
      }),
  };
}
