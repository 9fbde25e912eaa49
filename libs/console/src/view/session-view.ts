/**
 * Builds the view of a session from its records and deltas. The same records give the same view, so any past moment is
 * rebuilt from the records up to it.
 */
import type { Delta, JournalRecord, SessionEvent, StateValue, ToolResult } from '@coxswain/protocol';
import { createEventTranslator, printable, type UiEvent, UsageCollector, type UsageReport } from '../browser-client.ts';
import { CallList } from './call-list.ts';
import type { Entry, OpenApproval, PendingInjection } from './entries.ts';
import { type Moment, momentsOf } from './moments.ts';
import { noticeOf } from './notices.ts';
import { PendingQueue } from './pending-queue.ts';
import { stateName } from './state-name.ts';

/** The view of a session after a record. */
export interface SessionView {
  /** The newest record; 0 before the first. */
  readonly n: number;
  readonly at: string;
  readonly state: StateValue | null;
  readonly entries: readonly Entry[];
  readonly moments: readonly Moment[];
  readonly pending: readonly PendingInjection[];
  readonly approvals: readonly OpenApproval[];
  /** The ids of running calls. */
  readonly running: ReadonlySet<string>;
  readonly persona: string | null;
  readonly model: string | null;
  readonly turn: number;
  readonly usage: UsageReport;
  /** The type of the newest event; null before the first. */
  readonly lastEvent: string | null;
  /** The session that it was forked or imported from, and the last copied record. */
  readonly origin: { readonly session: string; readonly n: number } | null;
}

/** Builds the view of one session. Records must be in order; deltas may arrive at any time. */
export class SessionViewBuilder {
  readonly #translator = createEventTranslator();
  readonly #queue = new PendingQueue();
  readonly #usage = new UsageCollector();
  readonly #calls = new CallList();
  readonly #who = new Map<string, string | null>();
  #entries: Entry[] = [];
  #moments: Moment[] = [];
  #n = 0;
  #at = '';
  #state: StateValue | null = null;
  #persona: string | null = null;
  #model: string | null = null;
  #turn = 0;
  #lastEvent: string | null = null;
  #origin: SessionView['origin'] = null;
  #answer = -1;
  #placed = 0;

  /** A snapshot of the view: later records do not change it. */
  get view(): SessionView {
    return {
      n: this.#n,
      at: this.#at,
      state: this.#state,
      entries: [...this.#entries],
      moments: [...this.#moments],
      pending: this.#queue.pending,
      approvals: this.#queue.approvals,
      running: this.#calls.running,
      persona: this.#persona,
      model: this.#model,
      turn: this.#turn,
      usage: this.#usage.report,
      lastEvent: this.#lastEvent,
      origin: this.#origin,
    };
  }

  /** Takes the next record; a repeated one changes nothing. */
  record(record: JournalRecord): void {
    if (record.n <= this.#n) return;
    const before = this.#state === null ? null : stateName(this.#state);
    this.#moments.push(...momentsOf(record, before));
    this.#n = record.n;
    this.#at = record.at;
    for (const event of record.events) this.#follow(event, record);
    for (const event of this.#translator.record(record)) this.#add(event);
    this.#state = record.state;
    this.#usage.add(record);
  }

  /** Takes a piece of a running answer. */
  delta(delta: Delta): void {
    for (const event of this.#translator.delta(delta)) this.#add(event);
  }

  #follow(event: SessionEvent, { at, n }: JournalRecord): void {
    this.#queue.add(event, at);
    this.#lastEvent = event.type;
    if ('command_id' in event && 'actor' in event && event.command_id !== undefined)
      this.#who.set(event.command_id, event.actor === undefined ? null : printable(event.actor.name));
    // The transcript shows the whole result; UI events have its first line only.
    if (event.type === 'call_ended') this.#calls.result(event.call_id, resultText(event.result), filesOf(event.result));
    if (event.type === 'call_args_rewritten') this.#calls.args(event.call_id, event.args);
    if (event.type === 'approval_decided' && event.args) this.#calls.edited(event.call_id, event.args);
    if (event.type === 'session_copied') this.#origin = { session: event.session, n: event.up_to };
    if (event.type === 'reminder_injected' && event.direct && event.hook !== undefined)
      this.#put({
        kind: 'injection',
        key: `hooked-${n}-${event.command_id}`,
        n,
        at,
        commandId: event.command_id,
        origin: 'remind',
        text: printable(event.body),
        actor: `hook ${event.hook}`,
        seam: 'hook',
        turn: null,
      });
  }

  #add(event: UiEvent): void {
    switch (event.type) {
      case 'prompt_shown':
        this.#put({ kind: 'prompt', ...this.#place(), text: event.text, actor: event.actor });
        return;
      case 'run_started':
        this.#persona = event.persona;
        this.#model = event.model;
        this.#put({ kind: 'run', ...this.#place(), run: event.run, persona: event.persona, model: event.model });
        return;
      case 'turn_started':
        this.#turn = event.turn;
        return;
      case 'settings_changed':
        this.#persona = event.persona ?? this.#persona;
        this.#model = event.model ?? this.#model;
        break;
      case 'session_handed_off':
        this.#persona = event.persona;
        break;
      case 'text_appended':
        this.#append(event.turn, event.text, '');
        return;
      case 'reasoning_appended':
        this.#append(event.turn, '', event.text);
        return;
      case 'answer_restarted':
        this.#restart();
        return;
      case 'answer_ended':
        this.#endAnswer(event.partial, event.usage);
        return;
      case 'call_started':
      case 'approval_needed':
      case 'approval_settled':
      case 'call_progressed':
      case 'call_ended':
      case 'child_started':
        this.#calls.add(event, this.#entries, () => this.#place());
        return;
      case 'seam_delivered':
        for (const { commandId, origin, text } of event.injections)
          this.#put({
            kind: 'injection',
            ...this.#place(),
            commandId,
            origin,
            text: printable(text),
            actor: this.#who.get(commandId) ?? null,
            seam: event.seam,
            turn: event.turn,
          });
        return;
      // Handled by `record`, from the record itself.
      case 'hook_reminded':
      case 'injection_received':
      case 'state_changed':
        return;
      case 'run_ended':
        this.#endAnswer(true, null);
        this.#put({
          kind: 'end',
          ...this.#place(),
          run: event.run,
          stopReason: event.stopReason,
          turns: event.turns,
          usage: event.usage,
          costUsd: event.costUsd,
          problem: event.error ? `${event.error.code}: ${event.error.message}` : event.reason,
        });
        return;
      default:
        break;
    }
    const notice = noticeOf(event);
    if (notice) this.#put({ kind: 'notice', ...this.#place(), ...notice });
  }

  #place(): { readonly key: string; readonly n: number; readonly at: string } {
    this.#placed += 1;
    return { key: `e${this.#placed}`, n: this.#n, at: this.#at };
  }

  #put(entry: Entry): void {
    this.#entries.push(entry);
  }

  #append(turn: number, text: string, reasoning: string): void {
    const open = this.#entries[this.#answer];
    if (open?.kind === 'answer' && open.live) {
      this.#entries[this.#answer] = { ...open, text: open.text + text, reasoning: open.reasoning + reasoning };
      return;
    }
    this.#answer = this.#entries.length;
    this.#put({ kind: 'answer', ...this.#place(), turn, text, reasoning, live: true, partial: false, usage: null });
  }

  #restart(): void {
    const open = this.#entries[this.#answer];
    if (open?.kind === 'answer') this.#entries[this.#answer] = { ...open, text: '', reasoning: '', live: true };
  }

  #endAnswer(partial: boolean, usage: UsageReport['usage'] | null): void {
    const open = this.#entries[this.#answer];
    if (open?.kind === 'answer' && open.live)
      this.#entries[this.#answer] = { ...open, live: false, partial, usage: usage ?? open.usage, n: this.#n };
  }
}

/** The view up to a record. */
export function viewUpTo(records: readonly JournalRecord[], n: number): SessionView {
  const builder = new SessionViewBuilder();
  for (const record of records) {
    if (record.n > n) break;
    builder.record(record);
  }
  return builder.view;
}

function resultText(result: ToolResult): string {
  return printable(
    result.content
      .map((part) => (part.type === 'text' ? part.text : ''))
      .join('\n')
      .trim(),
  );
}

function filesOf(result: ToolResult): string[] {
  return result.content.flatMap((part) => (part.type === 'file' ? [part.filename ?? part.media_type] : []));
}
