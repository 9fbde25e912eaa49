/**
 * Runs each kind of effect for one session, and returns its outcome. When an effect starts or is aborted: `EffectTable`
 * (session-work.ts). Which effects are open: `effectsOf` (core/effects.ts in libs/turn).
 */
import type {
  Blobs,
  Clock,
  CommandSender,
  Hooks,
  Journal,
  Log,
  Models,
  Publisher,
  Telemetry,
  Toolset,
  WholeResults,
} from '@coxswain/ports';
import {
  AnswerSoFar,
  BOUNDS,
  delayAfter,
  type HookPoint,
  type HookRegistration,
  type HostRules,
  isOfPersona,
  type JsonObject,
  type Outcome,
  type PersonaStepInput,
  type SessionRef,
  type ToolDefinition,
} from '@coxswain/protocol';
import { lostAttempts, personaWait, type SessionState, type WorkEffect } from '@coxswain/turn';
import type { CommandQuotas } from '../hosting/command-quotas.ts';
import { measure } from '../trace/measure-work.ts';
import { traceparentOf } from '../trace/work-context.ts';
import { type FileCache, withStoredFiles } from '../view/shown-files.ts';
import type { Transcript } from '../view/transcript.ts';
import { needsApproval, notifyApproval, withApprovals } from './approvals.ts';
import { askCompaction } from './ask-compaction.ts';
import { READ_ON_TOOL } from './bound-result.ts';
import { checkStop } from './check-stop.ts';
import { consultHooks } from './consult-hooks.ts';
import { notifyParent, sendMessage, startChild, stopChild } from './crew-effects.ts';
import { HeldTools } from './held-tools.ts';
import { asker } from './hook-table.ts';
import { buildModelRequest } from './model-request.ts';
import { provisionHandoff } from './provision-handoff.ts';
import { isFailure, mcpServersOf, type ProvisionPorts, pinsOf, provisionSession } from './provision-session.ts';
import { readOutcome } from './read-outcome.ts';
import { modelsOfStep } from './route-model-step.ts';
import { waitForPersonaMs } from './run-limits.ts';
import { errorOutcome, INTERRUPTED, runToolCall } from './run-tool-call.ts';
import { servedToolsIn } from './select-tools.ts';
import { rulesOfSession, standInsProblem } from './session-rules.ts';
import { stoppedOutcome } from './stopped-outcome.ts';
import { streamAnswer } from './stream-answer.ts';
import { retryingBlobs } from './until-answered.ts';
import { wholeResults } from './whole-results.ts';

/** The ports that effects use. */
export interface WorkerPorts extends ProvisionPorts {
  readonly blobs: Blobs;
  readonly clock: Clock;
  readonly hooks: Hooks;
  readonly log: Log;
  readonly models: Models;
  readonly publisher: Publisher;
  readonly journal: Journal;
  /** Sends commands to other sessions. */
  readonly sender: CommandSender;
  /** Limits the sessions of a tenant: checked before the start of a child. Without it there is no limit. */
  readonly quotas?: Pick<CommandQuotas, 'sessionProblem'> | undefined;
  /** Metrics and traces. Without it nothing is measured. */
  readonly telemetry?: Telemetry | undefined;
}

/** The state of a session at one moment, and the session's transcript, which continues to grow. */
export interface SessionView {
  readonly state: SessionState;
  readonly transcript: Transcript;
}

/** Runs effects. Contract: `perform` rejects only for a broken invariant. */
export interface EffectWorker {
  /** Runs one effect. For a tool call: calls `taken` once another process has the work (`ToolCall.onTaken`). */
  perform(effect: WorkEffect, signal: AbortSignal, taken: () => void): Promise<Outcome>;
  /** Whether the effect is a tool call that an earlier owner of the session may have sent to its tool. */
  mayHaveRun(effect: WorkEffect): boolean;
}

/** The worker of one session. It owns the session's tool connections. */
export class SessionWorker implements EffectWorker {
  readonly #ports: WorkerPorts;
  readonly #ref: SessionRef;
  readonly #view: () => SessionView;
  readonly #feedback: (source: string, text: string) => void;
  readonly #recordStepProgress: (input: PersonaStepInput) => void;
  readonly #disposed = new AbortController();
  readonly #results: WholeResults;
  #files: FileCache | null = null;
  readonly #tools = new HeldTools(() => this.#openTools(), this.#disposed.signal);
  #answer = new AnswerSoFar();

  /**
   * @param feedback takes texts for the model from tools, servers and hooks, besides their results.
   * @param recordStepProgress takes the progress of a model step that a process of the persona runs, or that waits for one.
   */
  constructor(
    ports: WorkerPorts,
    ref: SessionRef,
    view: () => SessionView,
    feedback: (source: string, text: string) => void,
    recordStepProgress: (input: PersonaStepInput) => void,
  ) {
    this.#recordStepProgress = recordStepProgress;
    this.#ports = ports;
    this.#ref = ref;
    this.#view = view;
    this.#results = wholeResults(retryingBlobs(ports.blobs, ports.clock, this.#disposed.signal), () => {
      const { transcript } = view();
      const reader = transcript.frame.tools.find(({ name }) => name === READ_ON_TOOL);
      return { has: (ref) => transcript.hasWhole(ref), maxOutput: reader?.max_output };
    });
    this.#feedback = feedback;
  }

  /** The text so far of the run's newest answer, kept until the run's tools are closed. */
  get answer(): AnswerSoFar {
    return this.#answer;
  }

  async perform(effect: WorkEffect, signal: AbortSignal, taken: () => void = () => {}): Promise<Outcome> {
    const { telemetry, clock } = this.#ports;
    if (!telemetry) return readOutcome(await this.#perform(effect, signal, taken));
    const beganMs = clock.monotonicMs();
    const outcome = readOutcome(await this.#perform(effect, signal, taken));
    measure(telemetry.meters, effect, outcome, this.#view().state, (clock.monotonicMs() - beganMs) / 1_000);
    return outcome;
  }

  /** The trace context for another process that runs the effect. */
  #traceparent(effect: WorkEffect, state: SessionState): string | undefined {
    const spans = this.#ports.telemetry?.spans;
    return spans ? traceparentOf(this.#ref, state, effect, spans) : undefined;
  }

  async #perform(effect: WorkEffect, signal: AbortSignal, taken: () => void): Promise<Outcome> {
    const ports = this.#ports;
    const { state, transcript } = this.#view();
    await this.#tools.takeOver(transcript.frame.persona?.fingerprints.persona);
    switch (effect.kind) {
      case 'provision': {
        // An earlier run may have left connections open.
        await this.#tools.close();
        const { repins, settings, hooks, relay } = state.context;
        const pins = pinsOf(transcript.frame.persona, transcript.frame.tools, repins, settings?.mode);
        // In the rest of the turn of a hand-off, as after a fork with another model.
        const hooksBefore = hooks.filter((one) => isOfPersona(one) && one.persona === relay.from);
        const { outcome, toolset } = await provisionSession(
          ports,
          this.#ref,
          effect.id,
          { ...settings, parent: state.context.parent ?? undefined },
          { ...pins, hooksBefore },
          this.#results,
          signal,
          this.#feedback,
        );
        // An aborted effect may be given up already: then the held tools are those of a later run.
        if (signal.aborted) await toolset?.close();
        else if (toolset) await this.#tools.hold(toolset);
        return outcome;
      }
      case 'call_model': {
        const head = {
          idempotencyKey: this.#key(effect.id),
          sessionId: this.#ref.sessionId,
          turn: effect.turn,
          traceparent: this.#traceparent(effect, state),
        };
        let request = buildModelRequest(head, state, transcript);
        if (transcript.hasStoredFiles) {
          this.#files ??= new Map();
          const blobs = retryingBlobs(ports.blobs, ports.clock, signal);
          request = { ...request, messages: await withStoredFiles(request.messages, blobs, this.#files) };
        }
        const { epoch } = state.context;
        const ask = { ref: this.#ref, effectId: effect.id, epoch, request, answer: this.#answer };
        const backoffMs = restartBackoffMs(effect.restarts);
        if (backoffMs > 0) await ports.clock.sleep(backoffMs, signal);
        const outcome = await streamAnswer(this.#models(effect), ports.publisher, ports.clock, ask, signal);
        return withApprovals(outcome, request.tools, (tool, { call_id, args }) =>
          this.#needsApproval(tool, call_id, args as JsonObject, signal),
        );
      }
      case 'compact': {
        const backoffMs = restartBackoffMs(effect.restarts);
        if (backoffMs > 0) await ports.clock.sleep(backoffMs, signal);
        const key = this.#key(effect.id);
        return askCompaction(this.#models(effect), ports.clock, key, effect, transcript, this.#ref, signal);
      }
      case 'call_tool':
        return this.#callTool(effect, state, transcript, signal, taken);
      case 'stop_call':
        return this.#stopCall(effect, state, signal);
      case 'start_child':
        return startChild(
          ports,
          { ref: this.#ref, state, transcript },
          effect,
          signal,
          this.#traceparent(effect, state),
        );
      case 'stop_child':
        await stopChild(ports, { ref: this.#ref, state, transcript }, effect, signal);
        return stoppedOutcome(effect, effect.order.reason, true);
      case 'send_message':
        return sendMessage(ports, { ref: this.#ref, state, transcript }, effect, signal);
      case 'hand_off': {
        const session = { ref: this.#ref, state, transcript };
        const { outcome, toolset } = await provisionHandoff(
          ports,
          session,
          effect,
          this.#results,
          signal,
          this.#feedback,
        );
        const isReady = toolset && outcome.type === 'provision_outcome' && outcome.status === 'ok';
        const next = isReady ? { toolset, persona: outcome.provision.fingerprints.persona } : null;
        // As for `provision`.
        if (signal.aborted) await toolset?.close();
        else await this.#tools.prepare(next);
        return outcome;
      }
      case 'notify_parent':
        return notifyParent(ports, { ref: this.#ref, state, transcript }, effect, signal);
      case 'consult': {
        const registrations = effect.hooks.map((id) => registrationOf(state, effect.point, id));
        const tool = effect.callId === undefined ? undefined : this.#toolOfCall(state, transcript, effect.callId);
        const consult = {
          ref: this.#ref,
          effectId: effect.id,
          point: effect.point,
          registrations,
          failOpen: state.context.consult?.fail_open ?? [],
          payload: effect.payload,
          tool,
          needsApproval: (args: JsonObject) => this.#needsApproval(tool, effect.callId ?? '', args, signal),
          isRunAborting: () => this.#view().state.context.aborting,
          transcript: () => transcript.view(),
          traceparent: this.#traceparent(effect, state),
          ...(effect.point === 'transform_context' ? { messages: transcript.viewAsked() } : {}),
          onFeedback: (hook: string, text: string) => this.#feedback(`hook:${hook}`, text),
        };
        return consultHooks(asker(ports.hooks, ports.served), ports.clock, consult, signal);
      }
      case 'check_stop': {
        const question = { ref: this.#ref, turn: state.context.turn, messages: transcript.view() };
        const ask = { effectId: effect.id, names: effect.predicates, question };
        return checkStop(ports.stopPredicates ?? {}, ports.clock, ask, signal);
      }
      case 'notify': {
        const ask = { ref: this.#ref, effectId: effect.id, callId: effect.callId, key: this.#key(effect.id) };
        return notifyApproval(ports.approvalNotices, state, ask, signal);
      }
      case 'close_tools':
        this.#answer = new AnswerSoFar();
        return { type: 'close_outcome', effect_id: effect.id, notes: (await this.#tools.close()).slice(0, 64) };
    }
  }

  mayHaveRun(effect: WorkEffect): boolean {
    return effect.kind === 'call_tool' && effect.epoch < this.#view().state.context.epoch;
  }

  /** Closes the tool connections permanently. Never rejects. @returns a note for each that could not be closed. */
  dispose(): Promise<readonly string[]> {
    this.#disposed.abort();
    return this.#tools.close();
  }

  async #callTool(
    effect: Extract<WorkEffect, { kind: 'call_tool' }>,
    state: SessionState,
    transcript: Transcript,
    signal: AbortSignal,
    onTaken: () => void,
  ): Promise<Outcome> {
    const { epoch } = state.context;
    const mayHaveRun = this.mayHaveRun(effect);
    const toolset = await this.#tools.get();
    if (!toolset) {
      const text = `The tools of this session could not be reopened. ${effect.tool} was not run.`;
      const { status, result } = mayHaveRun ? INTERRUPTED : errorOutcome('error', text, 'tool_unavailable');
      return { type: 'call_outcome', effect_id: effect.id, call_id: effect.callId, status, result, duration_ms: 0 };
    }
    let progress = 0;
    const tool = transcript.frame.tools.find((candidate) => candidate.name === effect.tool);
    const call = {
      idempotencyKey: this.#key(effect.id),
      ref: this.#ref,
      callId: effect.callId,
      tool: effect.tool,
      args: effect.args,
      epoch,
      isIdempotent: tool?.traits.idempotent === true,
      onProgress: (text: string) =>
        this.#ports.publisher.delta(this.#ref, {
          type: 'message_update',
          session_id: this.#ref.sessionId,
          effect_id: effect.id,
          epoch,
          attempt: 1,
          turn: state.context.turn,
          index: progress++,
          kind: 'progress',
          offset: 0,
          text: text.toWellFormed(),
          call_id: effect.callId,
          tool: effect.tool,
        }),
      onFeedback: (text: string) => this.#feedbackOfCall(effect, text),
      onTaken,
      traceparent: this.#traceparent(effect, state),
    };
    const hasReadOnTool = transcript.frame.tools.some(({ name }) => name === READ_ON_TOOL);
    const dispatch = { effectId: effect.id, call, tool, hasReadOnTool, mayHaveRun };
    const { blobs, clock } = this.#ports;
    return runToolCall(toolset, retryingBlobs(blobs, clock, signal), clock, dispatch, signal);
  }

  #needsApproval(
    tool: ToolDefinition | undefined,
    callId: string,
    args: JsonObject,
    signal: AbortSignal,
  ): Promise<boolean> {
    const question = { ref: this.#ref, callId, tool: tool?.name ?? '', args };
    const toolset = async () => this.#tools.get();
    return needsApproval(tool, question, toolset, this.#ports.clock, signal);
  }

  /**
   * Sends the order to stop a call. The call ends with the outcome of its worker, or with the grace period; at once if
   * the order reached no worker.
   */
  async #stopCall(
    effect: Extract<WorkEffect, { kind: 'stop_call' }>,
    state: SessionState,
    signal: AbortSignal,
  ): Promise<Outcome> {
    const { reason, graceMs } = effect.order;
    const toolset = await this.#tools.get();
    const isSent = (await toolset?.stop?.(this.#key(effect.id), effect.tool, reason, state.context.epoch)) ?? false;
    if (isSent) await this.#ports.clock.sleep(graceMs, signal);
    return stoppedOutcome(effect, isSent ? reason : `${reason}; the order to stop reached no worker`, true);
  }

  /** Takes feedback of a call that is still running. Feedback of any other call is late, and dropped. */
  #feedbackOfCall({ id, callId, tool }: Extract<WorkEffect, { kind: 'call_tool' }>, text: string): void {
    const row = this.#view().state.context.calls.find((candidate) => candidate.call_id === callId);
    if (row?.status === 'running' && row.effect_id === id) this.#feedback(`tool:${tool}`, text);
    else this.#ports.log.info({ session_id: this.#ref.sessionId, effect_id: id }, 'late feedback dropped');
  }

  // Several calls may wait for the tools, so the signal of one call does not end the opening.
  async #openTools(): Promise<Toolset | null> {
    const { state, transcript } = this.#view();
    const { persona } = transcript.frame;
    if (!persona) return null;
    const { settings } = state.context;
    const mcpServers = mcpServersOf(persona.definition, persona.served, settings);
    const { name, version } = persona.persona;
    const { skills } = persona.definition;
    const rules = rulesOfSession(this.#ports, this.#ref.tenant, settings);
    const spec = {
      ref: this.#ref,
      root: persona.root,
      mcpServers,
      rules,
      standIns: settings?.stand_ins,
      served: persona.served ? { name, version, tools: servedToolsIn(transcript.frame.tools) } : undefined,
      onFeedback: this.#feedback,
      results: this.#results,
      skills,
    };
    const opened = standInsProblem(rules, settings) ?? (await this.#ports.tools.open(spec, this.#disposed.signal));
    if (!isFailure(opened)) return opened;
    this.#ports.log.warn(
      { session_id: this.#ref.sessionId, code: opened.code },
      `tools could not be reopened: ${opened.message}`,
    );
    return null;
  }

  #toolOfCall(state: SessionState, transcript: Transcript, callId: string): ToolDefinition | undefined {
    const name = state.context.calls.find((row) => row.call_id === callId)?.tool;
    return transcript.frame.tools.find((tool) => tool.name === name);
  }

  /** The models for a step: in this process, or in one that serves the persona. */
  #models({ id: effectId, epoch: firstRequestEpoch }: WorkEffect): Models {
    const { served, clock } = this.#ports;
    const { state, transcript } = this.#view();
    const { persona } = transcript.frame;
    const rules = rulesOfSession(this.#ports, this.#ref.tenant, state.context.settings);
    const models = heldTo(rules, this.#ports.models);
    if (!served || !persona) return models;
    return modelsOfStep(models, served, clock, {
      ref: this.#ref,
      effectId,
      epoch: state.context.epoch,
      firstRequestEpoch,
      persona: persona.persona.name,
      version: persona.persona.version,
      servedOnly: persona.served === true,
      waitMs: waitForPersonaMs(state.context.settings ?? {}, persona.definition),
      lost: lostAttempts(state.context, effectId),
      isWaiting: () => personaWait(this.#view().state.context)?.effect_id === effectId,
      recordProgress: this.#recordStepProgress,
    });
  }

  #key(effectId: string): string {
    return `${this.#ref.tenant}.${this.#ref.sessionId}.${effectId}`;
  }
}

function heldTo(rules: HostRules, models: Models): Models {
  return { check: (model) => models.check(model, rules), resolve: (model) => models.resolve(model, rules) };
}

// A hook that was unregistered after its consult was recorded is unavailable.
function registrationOf({ context }: SessionState, point: HookPoint, id: string): HookRegistration {
  const known = context.hooks.find((hook) => hook.point === point && hook.id === id);
  if (known) return known;
  return { id, point, pattern: '*', priority: 0, timeout_ms: 1, on_error: 'fail_closed', unavailable: true };
}

// If hosts crash repeatedly during one model step, the provider must not get a flood of requests. The first two
// restarts have no delay, because deploys and crashes are normal. Their limit: `decideOwned` (owners.ts in libs/turn).
function restartBackoffMs(restarts: number): number {
  if (restarts < 3) return 0;
  return delayAfter(restarts - 2, { firstMs: BOUNDS.modelRestartBackoffMs, maxMs: BOUNDS.modelRestartBackoffMaxMs });
}
