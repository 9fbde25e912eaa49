/** The calls of a transcript: each has one entry, which changes until the call has ended. */
import { cutTextToEnd, type Json } from '@coxswain/protocol';
import type { UiEvent } from '../browser-client.ts';
import type { CallEntry, Entry } from './entries.ts';

/** UI events about calls. */
export type CallEvent = Extract<
  UiEvent,
  {
    type: 'call_started' | 'approval_needed' | 'approval_settled' | 'call_progressed' | 'call_ended' | 'child_started';
  }
>;

interface Result {
  readonly text: string;
  readonly files: readonly string[];
}

const PROGRESS_MAX_CHARS = 4_000;

/** Tracks the calls of one session. */
export class CallList {
  readonly #places = new Map<string, number>();
  readonly #results = new Map<string, Result>();
  readonly #args = new Map<string, Json>();
  readonly #edited = new Set<string>();
  #running: ReadonlySet<string> = new Set();

  /** The running calls. */
  get running(): ReadonlySet<string> {
    return this.#running;
  }

  /** Sets the whole result of a call before its `call_ended` event. */
  result(callId: string, text: string, files: readonly string[]): void {
    this.#results.set(callId, { text, files });
  }

  /** Sets changed arguments of a call. */
  args(callId: string, args: Json): void {
    this.#args.set(callId, args);
  }

  /** Sets the arguments that the approver of a call has edited. */
  edited(callId: string, args: Json): void {
    this.#args.set(callId, args);
    this.#edited.add(callId);
  }

  /** Updates the entry of a call, or appends a new one. */
  add(event: CallEvent, entries: Entry[], place: () => Pick<Entry, 'key' | 'n' | 'at'>): void {
    const known = this.#places.get(event.callId);
    const old = known === undefined ? undefined : entries[known];
    if (old?.kind === 'call') {
      const changed = this.#changed(old, event);
      if (known !== undefined) entries[known] = changed;
    } else {
      // Without an entry, these events have nothing to show.
      if (event.type === 'call_progressed' || event.type === 'approval_settled') return;
      this.#places.set(event.callId, entries.length);
      const tool = event.type === 'child_started' ? 'delegate' : event.tool;
      entries.push(this.#changed({ ...NEW, ...place(), callId: event.callId, tool }, event));
    }
  }

  #changed(call: CallEntry, event: CallEvent): CallEntry {
    switch (event.type) {
      case 'approval_needed':
        return { ...call, standing: 'waiting', args: event.args, summary: event.summary };
      case 'approval_settled': {
        const by = event.by === null ? '' : ` by ${event.by}`;
        const reason = event.reason === null ? '' : `: ${event.reason}`;
        const edited = this.#args.get(event.callId);
        const how = this.#edited.has(event.callId) ? ', with edited arguments' : '';
        const decision = `${DECIDED[event.decision]}${by}${how}${reason}`;
        return { ...call, decision, ...(edited === undefined ? {} : { args: edited }) };
      }
      case 'call_started':
        this.#running = new Set([...this.#running, event.callId]);
        return {
          ...call,
          standing: 'running',
          args: event.args,
          summary: event.summary,
          startedAt: event.at,
        };
      case 'call_progressed':
        return { ...call, progress: cutTextToEnd(nextLine(call.progress) + event.text, PROGRESS_MAX_CHARS) };
      case 'child_started':
        return { ...call, children: [...call.children, event.session] };
      case 'call_ended': {
        this.#running = new Set([...this.#running].filter((id) => id !== event.callId));
        const { text, files } = this.#results.get(event.callId) ?? { text: event.result, files: [] };
        this.#results.delete(event.callId);
        return {
          ...call,
          standing: event.status,
          summary: call.summary === '' ? event.summary : call.summary,
          progress: '',
          result: text,
          files,
          isError: event.isError,
          endedAt: event.at,
          durationMs: event.durationMs,
        };
      }
    }
  }
}

/** Each report starts a line. Reports of a command end with the line breaks of its output. */
function nextLine(shown: string): string {
  return shown === '' || shown.endsWith('\n') ? shown : `${shown}\n`;
}

const NEW: Omit<CallEntry, 'key' | 'n' | 'at' | 'callId' | 'tool'> = {
  kind: 'call',
  args: null,
  summary: '',
  standing: 'running',
  progress: '',
  result: null,
  files: [],
  isError: false,
  startedAt: null,
  endedAt: null,
  durationMs: null,
  decision: null,
  children: [],
};

const DECIDED = {
  allow: 'allowed',
  deny: 'denied',
  superseded: 'no longer asked',
  aborted: 'aborted',
  expired: 'expired',
} as const;
