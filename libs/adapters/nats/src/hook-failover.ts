import type { HookReply, HookRequest } from '@coxswain/ports';
import { HOOK_LIVENESS } from '@coxswain/protocol';
import { type HookQuestions, unavailable } from './ask-hooks.ts';

/** What fail-over needs to know of instances. */
export interface HookInstances {
  /** Where a question goes: to one instance, or without it to all in their queue group. */
  subject(request: HookRequest, instance?: string): string;
  /** Instances that serve a request's registration, the one that was heard most recently first. */
  living(request: HookRequest): readonly string[];
  /** Whether one lives, or may come back: it has fallen silent, and has not said that it leaves. */
  isExpected(request: HookRequest): boolean;
  /** How long an instance has not been heard. */
  silentMs(request: HookRequest, instance: string): number;
}

/**
 * Questions to handlers in other processes, moved between their instances. A consult may be asked several times; the
 * journal records the first answer.
 *
 * F1: The first question goes to the queue group. A live instance answers or confirms within milliseconds that it has the
 *     question. Without either, the instance with the newest heartbeat is asked.
 * F2: An instance that took a question and is silent for the bound is declared dead, and another one is asked. A later
 *     answer of the first one still counts if it comes first. If its heartbeats return, it is asked again: it may have
 *     lost its connection, and its answer with it.
 * F3: The bound is a third of the registration's timeout, at most the time for which heartbeats count. Half of the time is
 *     left for the next instance. A slow handler in a live process is not asked twice.
 * F4: "No responders" is not final while an instance is expected: it, or its server, may be restarting. The question is
 *     asked again until the caller's time is over. It is final if every instance has announced that it leaves.
 */
export interface HookFailover {
  /** Contract: never rejects. The caller bounds the time. */
  ask(request: HookRequest, signal: AbortSignal): Promise<HookReply>;
}

const LOOKED_EVERY_MS = 100;
/** The pause after "no responders". */
const UNHEARD_PAUSE_MS = 250;
/** A question that each instance dies of must not end them all: as a call, it moves three times. */
const ASKED_MAX = 4;
/** How long an instance that has fallen silent without a word is expected back. */
export const EXPECTED_FOR_MS = 600_000;
/** Heartbeats are 300 ms apart: a silence that is shorter than two of them says nothing. */
const SILENT_MIN_MS = 2 * HOOK_LIVENESS.beatMs;

/** Fail-over of questions on a connection. */
export function createHookFailover(questions: HookQuestions, instances: HookInstances): HookFailover {
  return {
    ask: (request, signal) =>
      new Promise((resolve) => {
        const silentForMs = Math.min(HOOK_LIVENESS.ttlMs, Math.max(SILENT_MIN_MS, request.registration.timeout_ms / 3));
        const tried = new Set<string>();
        const ended = new AbortController();
        let taker: { readonly instance: string; readonly atMs: number; wasSilent: boolean } | null = null;
        let askedMs = 0;
        /** How often an instance may have been given it. */
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
            // Another question that is still open may be answered, and an instance that was not asked may answer.
            const goesOn = isUnanswered && !signal.aborted && !ended.signal.aborted;
            if (goesOn && (open > 0 || askNext())) return;
            if (goesOn && reply === null && instances.isExpected(request)) return;
            settle(reply ?? unavailable('no instance serves it'));
          });
        };
        /** @returns whether there was another instance to ask. */
        const askNext = (): boolean => {
          const next = instances.living(request).find((instance) => !tried.has(instance));
          if (next === undefined || asked >= ASKED_MAX || !questions.isConnected()) return false;
          ask(next);
          return true;
        };
        const look = () => {
          // Without a connection, silence says nothing of instances.
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
