/**
 * Questions to hook services, moved between instances. A consult may be asked twice: the tape records one answer, the first.
 *
 * F1: The first question goes to the queue group. An instance that lives says at once that it has taken the question. Without
 *     that word it is asked again, of the instance that was heard most recently.
 * F2: An instance that took it and has been silent for the bound is declared dead: another one is asked. What the first one
 *     answers later still counts, if it comes first.
 *     If its heartbeats return, it is asked again: it may have lost its connection, and its answer with it.
 * F3: The bound is a third of the registration's time-out, at most the time for which heartbeats count: half of the time is left to
 *     the instance that is asked next. A slow handler whose process lives is not asked twice.
 */
import type { HookReply, HookRequest } from '@coxswain/ports';
import { HOOK_LIVENESS, subjects } from '@coxswain/protocol';
import type { HookQuestions } from './ask-hooks.ts';

/** What fail-over needs to know of instances. */
export interface HookInstances {
  isConnected(): boolean;
  /** Instances that serve a request's registration, the one that was heard most recently first. */
  living(request: HookRequest): readonly string[];
  /** How long an instance has not been heard. */
  silentMs(request: HookRequest, instance: string): number;
}

/** See the top of the file. */
export interface HookFailover {
  /** Contract: never rejects. The caller bounds the time. */
  ask(request: HookRequest, signal: AbortSignal): Promise<HookReply>;
}

const LOOKED_EVERY_MS = 100;
/** A question is asked this often at most, however many instances are silent. */
const ASKED_MAX = 8;
/** Heartbeats are 300 ms apart: a silence that is shorter than two of them says nothing. */
const SILENT_MIN_MS = 2 * HOOK_LIVENESS.beatMs;

/** Fail-over of questions on a connection. */
export function createHookFailover(questions: HookQuestions, instances: HookInstances): HookFailover {
  return {
    ask: (request, signal) =>
      new Promise((resolve) => {
        const { ref, registration } = request;
        const silentForMs = Math.min(HOOK_LIVENESS.ttlMs, Math.max(SILENT_MIN_MS, registration.timeout_ms / 3));
        const tried = new Set<string>();
        const ended = new AbortController();
        let taker: { readonly instance: string; readonly atMs: number; wasSilent: boolean } | null = null;
        let askedMs = 0;
        let asked = 0;
        let open = 0;
        let timer: NodeJS.Timeout | undefined;

        const settle = (reply: HookReply) => {
          clearInterval(timer);
          signal.removeEventListener('abort', aborted);
          resolve(reply);
          ended.abort();
        };
        const aborted = () => ended.abort(signal.reason);
        const ask = (instance: string | undefined) => {
          asked++;
          open++;
          askedMs = performance.now();
          taker = null;
          if (instance !== undefined) tried.add(instance);
          const subject =
            instance === undefined
              ? subjects.hook(ref.tenant, registration.id)
              : subjects.hookTo(ref.tenant, registration.id, instance);
          const onTaken = (by: string) => {
            tried.add(by);
            taker = { instance: by, atMs: performance.now(), wasSilent: false };
          };
          void questions.ask(subject, request, ended.signal, onTaken).then((reply) => {
            open--;
            const isUnanswered = reply.status === 'failed' && reply.code === 'hook_unavailable';
            // Another question that is still open may be answered, and an instance that was not asked may answer.
            if (!isUnanswered || signal.aborted || ended.signal.aborted || !(open > 0 || askNext())) settle(reply);
          });
        };
        /** @returns whether there was another instance to ask. */
        const askNext = (): boolean => {
          const next = instances.living(request).find((instance) => !tried.has(instance));
          if (next === undefined || asked >= ASKED_MAX || !instances.isConnected()) return false;
          ask(next);
          return true;
        };
        signal.addEventListener('abort', aborted, { once: true });
        ask(undefined);
        timer = setInterval(() => {
          // Without a connection, silence says nothing of instances.
          if (!instances.isConnected()) return;
          const nowMs = performance.now();
          const silentMs = taker
            ? Math.min(instances.silentMs(request, taker.instance), nowMs - taker.atMs)
            : nowMs - askedMs;
          if (taker && silentMs >= SILENT_MIN_MS) taker.wasSilent = true;
          if (silentMs >= silentForMs) askNext();
          else if (taker?.wasSilent && silentMs < SILENT_MIN_MS && asked < ASKED_MAX) ask(taker.instance);
        }, LOOKED_EVERY_MS);
        timer.unref();
        if (signal.aborted) aborted();
      }),
  };
}
