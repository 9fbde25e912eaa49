/**
 * The request of a model call, from the pinned persona and the transcript. The system text is the one that provisioning
 * has pinned (system-prompt.ts). If results contain stored files, `SessionWorker` puts their bytes into the messages:
 * `withStoredFiles` (view/shown-files.ts). The request of a compaction: ask-compaction.ts.
 */
import type { ModelRequest } from '@coxswain/ports';
import type { Message } from '@coxswain/protocol';
import { openStep, type SessionState } from '@coxswain/turn';
import type { Transcript } from '../view/transcript.ts';
import { toolsOfStep } from './select-tools.ts';

/** The parts of a request that the transcript does not hold. */
export type RequestHead = Pick<ModelRequest, 'idempotencyKey' | 'sessionId' | 'turn' | 'traceparent'>;

/**
 * Builds the request. Its tools are those that the open declared step may call, or all.
 * @throws Error without a pinned persona: a broken invariant.
 */
export function buildModelRequest(head: RequestHead, { context }: SessionState, transcript: Transcript): ModelRequest {
  const { persona, tools } = transcript.frame;
  if (!persona) throw new Error('a model call without a persona');
  const view = transcript.viewLater();
  let messages: readonly Message[] | null = null;
  return {
    ...head,
    model: persona.model,
    system: persona.system_prompt,
    // Built at the first read: by the model, or by `SessionWorker` if results contain stored files. So the runner's own
    // work in a turn does not grow with the session.
    get messages() {
      messages ??= view();
      return messages;
    },
    tools: toolsOfStep(tools, persona.definition, openStep(context)?.name),
    ...(persona.output ? { outputSchema: persona.output.schema } : {}),
    answered: transcript.answered,
  };
}
