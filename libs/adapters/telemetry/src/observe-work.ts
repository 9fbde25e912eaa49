/** Reports a worker's work: a meter, a span below the session's span, and a log line. */
import { randomBytes } from 'node:crypto';
import type { Log, Telemetry } from '@coxswain/ports';
import {
  ERROR_CATALOGUE,
  formatTraceparent,
  isErrorCode,
  parseTraceparent,
  type StartedWork,
  type WorkObserver,
} from '@coxswain/protocol';

const NAMES = { tool: 'serve_tool', step: 'serve_step', hook: 'serve_hook' } as const;

/** Observes the work of a process. */
export function observeWork({ meters, spans }: Telemetry, log: Log): WorkObserver {
  return {
    begin(work) {
      const { kind, name } = work;
      const beganMs = performance.now();
      const startMs = Date.now();
      const above = parseTraceparent(work.traceparent);
      const context =
        above && spans ? { ...above, spanId: newSpanId(), sampled: spans.keeps(above.traceId, above) } : null;
      meters.add('coxswain_served_running', { kind }, 1);
      return {
        // Without tracing, the received context is passed on.
        traceparent: context ? formatTraceparent(context) : above ? work.traceparent : undefined,
        end({ status, code }) {
          const tookMs = performance.now() - beganMs;
          meters.add('coxswain_served_running', { kind }, -1);
          meters.observe('coxswain_served_seconds', { kind, name, outcome: status }, tookMs / 1_000);
          const ids = { session_id: work.sessionId, call_id: work.callId, effect_id: work.effectId };
          log.debug(
            { tenant: work.tenant, ...ids, kind, name, status, code, ms: Math.round(tookMs), trace_id: above?.traceId },
            'work was served',
          );
          if (!context || !spans) return;
          spans.take({
            context,
            parent: above,
            name: `${NAMES[kind]} ${name}`,
            kind: 'server',
            startMs,
            endMs: startMs + tookMs,
            error: status === 'error' ? errorOf(work, code) : null,
            attributes: attributesOf(work, status),
            moments: [],
            links: [],
          });
        },
      };
    },
  };
}

/** The error text of a tool or a hook is content, so the description is that of the error code. */
function errorOf({ kind, name }: StartedWork, code = 'tool_failed') {
  return { type: code, message: isErrorCode(code) ? ERROR_CATALOGUE[code].meaning : `${NAMES[kind]} ${name} failed` };
}

function attributesOf({ kind, name, sessionId, callId }: StartedWork, status: string) {
  return {
    'gen_ai.conversation.id': sessionId,
    'coxswain.status': status,
    'messaging.system': 'nats',
    ...(kind === 'tool' ? { 'gen_ai.tool.name': name } : {}),
    // The id of a model step does not identify a tool call.
    ...(kind !== 'step' && callId !== undefined ? { 'gen_ai.tool.call.id': callId } : {}),
    ...(kind === 'step' ? { 'gen_ai.agent.name': name } : {}),
    ...(kind === 'hook' ? { 'coxswain.hook.id': name } : {}),
  };
}

/** A random span id: 16 hexadecimal digits. */
export function newSpanId(): string {
  return randomBytes(8).toString('hex');
}

/** A random trace id: 32 hexadecimal digits. */
export function newTraceId(): string {
  return randomBytes(16).toString('hex');
}
