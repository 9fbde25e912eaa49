/** A tool call: its arguments, status and result. */
import type { Json } from '@coxswain/protocol';
import type { VNode } from 'preact';
import { printableJson } from '../browser-client.ts';
import { Markdown } from '../markdown/markdown.tsx';
import { hashOf, sessionPlace } from '../page/place.ts';
import { clockText, durationText, shortId } from '../page/wording.ts';
import type { CallEntry, CallStanding } from '../view/entries.ts';

/** Actions on calls. */
export interface CallControls {
  /** Cancels a call; null if the past is shown, or the token has no scope for it. */
  readonly cancelCall: ((callId: string) => void) | null;
  /** Scrolls to the approval of a call. */
  readonly showApproval: (callId: string) => void;
}

const STANDINGS: Readonly<Record<CallStanding, string>> = {
  waiting: 'waits for you',
  running: 'running',
  ok: 'done',
  error: 'error',
  denied: 'denied',
  skipped: 'skipped',
  cancelled: 'cancelled',
  interrupted: 'interrupted',
  aborted: 'aborted',
};

/** Longer results are collapsed. */
const OPEN_RESULT_CHARS = 1_200;

/** The card of a call. */
export function CallCard({ call, controls }: { readonly call: CallEntry; readonly controls: CallControls }): VNode {
  const { cancelCall } = controls;
  return (
    <article class={`entry call ${call.standing}`} data-n={call.n} data-call={call.callId}>
      <header class="call-head">
        <span class="call-name">
          <code class="tool">{call.tool}</code> <span class="summary">{call.summary}</span>
        </span>
        <span class="call-standing">
          <span class={`standing ${call.standing}`}>{STANDINGS[call.standing]}</span>
          {call.durationMs !== null && <span class="faint">{durationText(call.durationMs)}</span>}
          {call.standing === 'waiting' && (
            <button type="button" class="small" onClick={() => controls.showApproval(call.callId)}>
              Decide
            </button>
          )}
          {call.standing === 'running' && cancelCall && (
            <button
              type="button"
              class="small"
              aria-label={`Cancel call ${call.tool} ${call.callId}`}
              onClick={() => cancelCall(call.callId)}
            >
              Cancel call
            </button>
          )}
        </span>
      </header>
      {call.decision !== null && <p class="faint">{call.decision}</p>}
      {call.children.map((child) => (
        <p class="faint" key={child}>
          works in <a href={hashOf(sessionPlace(child))}>{shortId(child)}</a>
        </p>
      ))}
      {!isEmpty(call.args) && (
        <details>
          <summary>arguments</summary>
          <pre class="plain">{printableJson(call.args)}</pre>
        </details>
      )}
      {call.progress !== '' && <pre class="plain progress">{call.progress}</pre>}
      {call.result !== null && call.result !== '' && (
        <details open={call.result.length <= OPEN_RESULT_CHARS}>
          <summary>result {call.endedAt !== null && <time class="faint">{clockText(call.endedAt)}</time>}</summary>
          <CallResult call={call} />
        </details>
      )}
      {call.files.length > 0 && <p class="faint">files: {call.files.join(', ')}</p>}
    </article>
  );
}

/** Results of delegation are prose; the output of other tools is shown verbatim. */
function CallResult({ call }: { readonly call: CallEntry }) {
  const text = call.result ?? '';
  if (call.tool === 'delegate') return <Markdown text={text} />;
  return <pre class={call.isError ? 'plain error' : 'plain'}>{text}</pre>;
}

function isEmpty(args: Json): boolean {
  return args === null || (typeof args === 'object' && !Array.isArray(args) && Object.keys(args).length === 0);
}
