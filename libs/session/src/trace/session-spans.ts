/**
 * The spans of a session, folded from its records: by the host as records become durable, and later by any reader of the
 * journal. Only the host adds links to the spans of commands. No span is stored.
 *
 * A run is `invoke_agent` and contains its turns. A turn contains its answers (`chat`), calls (`execute_tool`),
 * consulted hooks and waiting approvals. Work outside a turn, such as a provision, is directly in the run. The first
 * run of a child session is inside the span of the call that started the child.
 */
import type { SpanSink } from '@coxswain/ports';
import {
  type CopyOrigin,
  cutText,
  type EndedSpan,
  ERROR_CATALOGUE,
  type EventOf,
  type Failure,
  type Input,
  isErrorCode,
  type JournalRecord,
  type ParentLink,
  rejectionIn,
  type SessionEvent,
  type SessionRef,
  type TraceContext,
} from '@coxswain/protocol';
import { unfinishedCopyAfter } from '../journal/copy-state.ts';
import {
  contentText,
  inputMessages,
  modelAttributes,
  outputMessages,
  spanText,
  systemInstructions,
  usageAttributes,
} from './gen-ai-attributes.ts';
import { OpenEffects, type Shown } from './open-effects.ts';
import { OpenSpan } from './open-spans.ts';
import { momentAttributes } from './span-moments.ts';
import { callSpanId, type TracedSession, traceOfRun, turnSpanId, workSpanId } from './trace-ids.ts';

interface Run {
  readonly run: number;
  readonly span: OpenSpan;
}

/** Folds a session's records into spans. */
export class SessionSpans {
  readonly #ref: SessionRef;
  readonly #content: boolean;
  readonly #masked: SpanSink['masked'];
  readonly #keeps: SpanSink['keeps'] | undefined;
  #n = 0;
  #trace: string | undefined;
  #parent: (ParentLink & { readonly detached?: true }) | null = null;
  #copy: CopyOrigin | null = null;
  #persona: string | null = null;
  #version: string | null = null;
  #model: string | null = null;
  #run: Run | null = null;
  #turn: { readonly turn: number; readonly span: OpenSpan } | null = null;
  #turnNumber = 0;
  #suspension: OpenSpan | null = null;
  readonly #calls = new Map<string, OpenSpan>();
  readonly #approvals = new Map<string, OpenSpan>();
  readonly #consults = new Map<
    string,
    { readonly point: string; readonly hooks: string[]; callId: string | undefined }
  >();
  readonly #openEffects: OpenEffects;
  /** Spans that the current record ended. */
  #ended: EndedSpan[] = [];
  /** By the ids of the effects that start them. */
  readonly #children = new Map<string, { readonly session: string; readonly callId: string }>();

  /**
   * @param sink says whether spans may include content, and which traces the sampler keeps. Without it: no content, and
   *   the sampling of {@link TracedSession.keeps} without a sampler.
   */
  constructor(ref: SessionRef, sink?: Omit<SpanSink, 'take'>) {
    this.#ref = ref;
    this.#content = sink?.capturesContent ?? false;
    this.#openEffects = new OpenEffects(this.#content);
    this.#masked = sink?.masked ?? ((text) => text);
    this.#keeps = sink?.keeps;
  }

  /** The number of the last record taken. */
  get n(): number {
    return this.#n;
  }

  /** The current or last run; 0 before the first. */
  get run(): number {
    return this.#run?.run ?? 0;
  }

  /** Ids of sessions that this one started, in order. Without children that ended in copied records. */
  get children(): readonly string[] {
    return [...this.#children.values()].map(({ session }) => session);
  }

  /** The inputs from which span ids are derived. */
  get traced(): TracedSession {
    return { ref: this.#ref, trace: this.#trace, parent: this.#parent, keeps: this.#keeps };
  }

  /**
   * Takes the next record.
   * @param cause the span that sent the record's command, where known: only the host that accepted the command knows it.
   * @returns the spans that ended with the record, children before their parents; none for the records of a copy.
   */
  take(record: JournalRecord, cause: TraceContext | null = null): readonly EndedSpan[] {
    const atMs = Date.parse(record.at);
    this.#n = record.n;
    this.#ended = [];
    const wasCopied = this.#copy !== null;
    this.#copy = unfinishedCopyAfter(this.#copy, record, this.#ref.sessionId);
    if (cause) this.#linkAffected(record, cause);
    this.#outcome(record.input, atMs);
    for (const event of record.events) {
      this.#openEffects.push(event, atMs);
      this.#event(event, atMs, cause);
    }
    this.#openEffects.keep(record.effects_open, atMs);
    if (!wasCopied && !this.#copy) return this.#ended;
    // The copied records describe another session's work. The spans that are open at the end of the copy start there.
    for (const span of this.#open()) span.startMs = atMs;
    this.#dropCopiedChildren(record);
    return [];
  }

  /**
   * Drops children that ended in copied records. A fork has never started them, and of an import that time has no spans.
   * A fork starts the child of a call that is still running itself, under the id in the copied record.
   */
  #dropCopiedChildren({ events }: JournalRecord): void {
    for (const event of events) if (event.type === 'child_ended') this.#children.delete(event.effect_id);
    for (const [effectId, { callId }] of this.#children) if (!this.#calls.has(callId)) this.#children.delete(effectId);
  }

  /** The open spans as if they ended at `nowMs`, the run's first; for displays of running work. */
  open(nowMs: number): readonly EndedSpan[] {
    return [...this.#open()].map((open) => {
      const span = open.ended(nowMs);
      return { ...span, attributes: { ...span.attributes, 'coxswain.open': true } };
    });
  }

  *#open(): Generator<OpenSpan> {
    if (this.#run && !this.#runEnded) yield this.#run.span;
    if (this.#suspension) yield this.#suspension;
    if (this.#turn) yield this.#turn.span;
    yield* this.#calls.values();
    yield* this.#approvals.values();
  }

  #runEnded = false;
  /** Whether the run was cancelled. Its current turn ends at once, some records before the run ends. */
  #isCancelled = false;

  /** `cancelled` as the status of a turn that the cancel of its run ended; otherwise empty. */
  get #cutOff(): { readonly 'coxswain.status'?: 'cancelled' } {
    return this.#isCancelled ? { 'coxswain.status': 'cancelled' } : {};
  }

  /** Links the spans that a command affects to the sender's span. The span of a run that it starts: `#beginRun`. */
  #linkAffected({ input, events }: JournalRecord, cause: TraceContext): void {
    if (input.type !== 'command' || rejectionIn(events, input.command_id)) return;
    const affected = new Set<OpenSpan>();
    const add = (span: OpenSpan | null | undefined) => span && affected.add(span);
    for (const event of events) {
      if (event.type === 'approval_decided' && event.command_id === input.command_id)
        add(this.#approvals.get(event.call_id));
      else if (event.type === 'call_cancel_requested') add(this.#calls.get(event.call_id));
      else if (event.type === 'control_outcome' && event.control === 'cancel_call') add(this.#calls.get(event.target));
      else if (event.type === 'resumed') add(this.#suspension);
    }
    if (!this.#runEnded && input.verb === 'cancel') add(this.#run?.span);
    else if (!this.#runEnded && affected.size === 0) add(this.#around);
    for (const span of affected) span.link(cause);
  }

  #place(spanId: string): { readonly context: TraceContext; readonly parent: TraceContext | null } {
    const above = this.#turn?.span.context ?? this.#run?.span.context ?? null;
    const { traceId, sampled } = above ?? traceOfRun(this.traced, Math.max(1, this.run)).context;
    return { context: { traceId, spanId, sampled }, parent: above };
  }

  /** The span around the current work: of the open turn, otherwise of the run. */
  get #around(): OpenSpan | null {
    return this.#turn?.span ?? this.#run?.span ?? null;
  }

  #end(span: OpenSpan, endMs: number, error: EndedSpan['error'] = null): void {
    this.#ended.push(span.ended(endMs, error));
  }

  /** The span of an effect whose outcome is the input: a provision, an answer, a compaction or consulted hooks. */
  #outcome(input: Input, atMs: number): void {
    if (!('effect_id' in input)) return;
    const { type, effect_id: id } = input;
    const opened = this.#openEffects.get(id);
    const startMs = opened?.atMs ?? atMs;
    const begin = (name: string, kind?: EndedSpan['kind']) =>
      new OpenSpan(this.#place(workSpanId(this.#ref, 'effect', id)), name, startMs, kind).with({
        'gen_ai.conversation.id': this.#ref.sessionId,
      });
    if (type === 'provision_outcome') {
      if (!this.#run) return;
      const failure = input.status === 'failed' ? input.error : undefined;
      this.#end(begin('provision').with({ 'coxswain.status': input.status }), atMs, this.#errorOf(failure));
    } else if (type === 'model_outcome' || type === 'compact_outcome') {
      const [message, finishReason] =
        type === 'model_outcome'
          ? [input.message, input.finish_reason]
          : [{ role: 'assistant' as const, content: [{ type: 'text' as const, text: input.text }] }, 'stop'];
      const said =
        type === 'model_outcome'
          ? { 'gen_ai.response.finish_reasons': [input.finish_reason] }
          : { 'coxswain.purpose': 'compaction' };
      const span = begin(`chat ${modelName(this.#model)}`, 'client').with({
        'gen_ai.operation.name': 'chat',
        ...modelAttributes(this.#model),
        'gen_ai.agent.name': this.#persona,
        ...usageAttributes(input.usage),
        ...said,
        ...this.#inputAttributes(opened?.shown ?? null),
        ...(this.#content ? { 'gen_ai.output.messages': outputMessages(message, finishReason, this.#masked) } : {}),
        'coxswain.status': input.status,
        'coxswain.attempts': input.attempts,
      });
      this.#end(span, atMs, this.#errorOf(input.error));
    } else if (type === 'consult_outcome') {
      const consult = this.#consults.get(id);
      this.#consults.delete(id);
      const failed = input.answers.find(({ failure }) => failure !== undefined)?.failure;
      const span = begin(`hook ${consult?.point ?? 'unknown'}`).with({
        'coxswain.hook.point': consult?.point,
        'coxswain.hook.ids': consult?.hooks,
        'gen_ai.tool.call.id': consult?.callId,
        'coxswain.hook.verdicts': input.answers.flatMap(({ verdict }) => (verdict ? [verdict.kind] : [])),
        'coxswain.status': input.status,
      });
      this.#end(span, atMs, this.#errorOf(failed));
    }
  }

  #inputAttributes(shown: Shown | null) {
    if (!shown) return {};
    const { system, messages } = shown();
    return {
      'gen_ai.system_instructions': system === '' ? undefined : systemInstructions(system, this.#masked),
      ...inputMessages(messages, this.#masked),
    };
  }

  #event(event: SessionEvent, atMs: number, cause: TraceContext | null): void {
    switch (event.type) {
      case 'prompt_received':
        this.#beginRun(event, atMs, cause);
        return;
      case 'persona_changed':
        this.#know(event.provision.persona, event.provision.model.name);
        return;
      case 'agent_start':
        this.#know({ name: event.persona, version: this.#version }, event.model);
        return;
      case 'turn_start':
        this.#beginTurn(event.turn, atMs);
        return;
      case 'turn_end':
        this.#endTurn(event, atMs);
        return;
      case 'call_started':
        this.#calls.set(event.call_id, this.#call(event.call_id, event.tool, atMs).with(this.#args(event.args)));
        return;
      case 'child_started':
        this.#children.set(event.effect_id, { session: event.session, callId: event.call_id });
        this.#calls.get(event.call_id)?.moment('child_started', atMs, {
          'coxswain.child.session': event.session,
          'gen_ai.agent.name': event.persona,
        });
        return;
      case 'call_ended':
        this.#endCall(event, atMs);
        return;
      case 'hook_call': {
        const known = this.#consults.get(event.effect_id);
        if (known) known.hooks.push(event.hook);
        else this.#consults.set(event.effect_id, { point: event.point, hooks: [event.hook], callId: event.call_id });
        return;
      }
      case 'approval_requested': {
        const place = this.#place(workSpanId(this.#ref, `approval-${this.run}-${this.#turnNumber}`, event.call_id));
        const span = new OpenSpan(place, `approval ${event.tool}`, atMs).with({
          'gen_ai.conversation.id': this.#ref.sessionId,
          'gen_ai.tool.name': event.tool,
          'gen_ai.tool.call.id': event.call_id,
          'coxswain.approval.requested_by': event.requested_by,
        });
        this.#approvals.set(event.call_id, span);
        return;
      }
      case 'approval_decided': {
        const span = this.#approvals.get(event.call_id);
        this.#approvals.delete(event.call_id);
        if (span) this.#end(span.with({ 'coxswain.approval.decision': event.decision }), atMs);
        return;
      }
      case 'suspended':
        this.#suspension = new OpenSpan(
          this.#place(workSpanId(this.#ref, 'suspended', String(this.#n))),
          'suspended',
          atMs,
        );
        return;
      case 'resumed':
        if (this.#suspension) this.#end(this.#suspension.with({ 'coxswain.resumed_by': event.cause }), atMs);
        this.#suspension = null;
        return;
      case 'control_outcome':
        if (event.control === 'cancel' && event.status === 'cancelled') this.#isCancelled = true;
        return;
      case 'agent_end':
        this.#endRun(event, atMs);
        return;
      default:
        if (event.type === 'owned' && event.after_copy && this.#parent)
          this.#parent = { ...this.#parent, detached: true };
        this.#addMoment(event, atMs);
    }
  }

  #addMoment(event: SessionEvent, atMs: number): void {
    const span = this.#around;
    if (!span || this.#runEnded) return;
    const attributes = momentAttributes(event);
    if (attributes) span.moment(event.type === 'loop_checkpoint' ? 'seam' : event.type, atMs, attributes);
  }

  #know(persona: { readonly name: string | null; readonly version: string | null }, model: string | null): void {
    this.#persona = persona.name;
    this.#version = persona.version;
    this.#model = model;
  }

  #beginRun(event: Extract<SessionEvent, { type: 'prompt_received' }>, atMs: number, cause: TraceContext | null): void {
    if (event.settings) this.#trace = event.settings.trace;
    if (event.parent) this.#parent = event.parent;
    const { context, parent, before } = traceOfRun(this.traced, event.run);
    const caused = cause && cause.spanId !== parent?.spanId ? [cause] : [];
    const links = [...(before ? [before] : []), ...caused];
    const span = new OpenSpan({ context, parent, links }, 'invoke_agent', atMs).with({
      'gen_ai.operation.name': 'invoke_agent',
      'gen_ai.conversation.id': this.#ref.sessionId,
      'coxswain.run': event.run,
      'coxswain.tenant': this.#ref.tenant,
      ...(this.#content ? inputMessages(event.messages, this.#masked) : {}),
    });
    this.#run = { run: event.run, span };
    this.#runEnded = false;
    this.#isCancelled = false;
    this.#turnNumber = 0;
  }

  #endRun(event: Extract<SessionEvent, { type: 'agent_end' }>, atMs: number): void {
    if (!this.#run) return;
    // The end of a run ends all its spans, so that a journal with an open call or approval can still be shown.
    for (const span of [...this.#calls.values(), ...this.#approvals.values()]) this.#end(span, atMs);
    this.#calls.clear();
    this.#approvals.clear();
    if (this.#suspension) this.#end(this.#suspension, atMs);
    this.#suspension = null;
    if (this.#turn) this.#end(this.#turn.span.with(this.#cutOff), atMs);
    this.#turn = null;
    const { span } = this.#run;
    if (this.#persona !== null) span.name = `invoke_agent ${this.#persona}`;
    span.with({
      'gen_ai.agent.name': this.#persona,
      'gen_ai.agent.version': this.#version,
      ...modelAttributes(this.#model),
      ...usageAttributes(event.usage),
      'coxswain.stop_reason': event.stop_reason,
      'coxswain.turns': event.turns,
      'coxswain.cost_usd': event.cost_usd,
    });
    this.#runEnded = true;
    this.#end(span, atMs, event.stop_reason === 'error' ? this.#errorOf(event.error ?? FAILED) : null);
  }

  #beginTurn(turn: number, atMs: number): void {
    this.#turn = null;
    this.#turnNumber = turn;
    const span = new OpenSpan(this.#place(turnSpanId(this.#ref, this.run, turn)), `turn ${turn}`, atMs);
    this.#turn = { turn, span: span.with({ 'gen_ai.conversation.id': this.#ref.sessionId, 'coxswain.turn': turn }) };
    // A run's span starts without the persona in its name. The name gets it now, for displays of a running session.
    if (this.#run && this.#persona !== null) this.#run.span.name = `invoke_agent ${this.#persona}`;
  }

  #endTurn(event: Extract<SessionEvent, { type: 'turn_end' }>, atMs: number): void {
    if (!this.#turn) return;
    const spent = { ...usageAttributes(event.usage), 'coxswain.cost_usd': event.cost_usd };
    this.#end(this.#turn.span.with({ ...spent, ...this.#cutOff }), atMs);
    this.#turn = null;
  }

  #call(callId: string, tool: string, atMs: number): OpenSpan {
    const place = this.#place(callSpanId(this.#ref, this.#turnNumber, callId));
    return new OpenSpan(place, `execute_tool ${tool}`, atMs).with({
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.conversation.id': this.#ref.sessionId,
      'gen_ai.tool.name': tool,
      'gen_ai.tool.call.id': callId,
      'gen_ai.tool.type': 'function',
      'gen_ai.agent.name': this.#persona,
    });
  }

  #args(args: unknown): Record<string, string> {
    return this.#content ? { 'gen_ai.tool.call.arguments': contentText(args, this.#masked) } : {};
  }

  #endCall(event: Extract<SessionEvent, { type: 'call_ended' }>, atMs: number): void {
    // A refused or skipped call has no start event.
    const span = this.#calls.get(event.call_id) ?? this.#call(event.call_id, event.tool, atMs);
    this.#calls.delete(event.call_id);
    span.with({
      'coxswain.status': event.status,
      ...(this.#content ? { 'gen_ai.tool.call.result': contentText(event.result.content, this.#masked) } : {}),
    });
    const isError = event.is_error && event.status !== 'cancelled' && event.status !== 'skipped';
    this.#end(span, atMs, isError ? this.#callError(event) : null);
  }

  /** A tool's result is content, even as an error: in a span without content, the code or status describes it. */
  #callError({ tool, status, result }: EventOf<'call_ended'>): EndedSpan['error'] {
    const { code } = result.detail ?? {};
    const type = typeof code === 'string' ? code : status;
    const [first] = result.content;
    const text = this.#content && first?.type === 'text' ? spanText(first.text, this.#masked) : '';
    const known = isErrorCode(type)
      ? ERROR_CATALOGUE[type].meaning
      : `the tool call ${tool} ended with status ${status}`;
    return this.#errorOf({ code: type, message: text || known });
  }

  #errorOf(failure: { readonly code: string; readonly message: string } | undefined): EndedSpan['error'] {
    return failure ? { type: failure.code, message: cutText(this.#masked(failure.message), MESSAGE_MAX) } : null;
  }
}

const FAILED: Failure = { code: 'session_failed', message: 'the run failed' };
const MESSAGE_MAX = 500;

function modelName(model: string | null): string {
  if (model === null) return 'model';
  // The name of a scripted model is a path on its host, which means nothing elsewhere.
  return model.startsWith('scripted/') ? model.slice(model.lastIndexOf('/') + 1) : model.slice(model.indexOf('/') + 1);
}
