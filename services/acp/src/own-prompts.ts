import type { PromptResponse } from '@agentclientprotocol/sdk';
import { hasEnded, type JournalRecord, type SessionEvent, topState } from '@coxswain/protocol';
import { ACP_BOUNDS } from './acp-bounds.ts';
import { deferred } from './deferred.ts';
import type { WirePrompt } from './prompt-content.ts';
import { invalidParams } from './request-errors.ts';
import { turnEndOf } from './session-updates.ts';

/** A prompt whose end the editor awaits. */
export interface OwnPrompt {
  readonly content: WirePrompt;
  /** The id of the command that carries the prompt; empty if unsent. It changes when the prompt is sent again. */
  commandId: string;
  /** `sent`: not recorded yet. `waiting`: queued in the session, or held here. `running`: a run has it. */
  stage: 'sent' | 'waiting' | 'running';
  /** Whether the prompt is being withdrawn, to be sent again or dropped. */
  isRevoking: boolean;
  /** The prompt is held here, unsent, until the run ends. The next run starts with it. */
  isHeld: boolean;
  readonly answer: Promise<PromptResponse>;
  settle(response: PromptResponse): void;
  fail(error: unknown): void;
}

/** Own command ids that are remembered, to recognize them in the journal. */
const REMEMBERED_MAX = 4_096;

/** The prompts of one session whose end an editor awaits: their stages and their answers. */
export class OwnPrompts {
  readonly #open = new Set<OwnPrompt>();
  readonly #sent = new Set<string>();

  /** The prompts without an answer, in the order in which they were added. */
  get open(): readonly OwnPrompt[] {
    return [...this.#open];
  }

  /** Adds a prompt. @throws RequestError `session_busy` if `ACP_BOUNDS.promptsWaitingMax` prompts are open. */
  add(content: WirePrompt): OwnPrompt {
    if (this.#open.size >= ACP_BOUNDS.promptsWaitingMax)
      throw invalidParams(`${this.#open.size} prompts of this session are already queued`, 'sessionId', 'session_busy');
    const { promise: answer, resolve, reject } = deferred<PromptResponse>();
    const end = (done: () => void) => {
      this.#open.delete(prompt);
      done();
    };
    const prompt: OwnPrompt = {
      content,
      commandId: '',
      stage: 'sent',
      isRevoking: false,
      isHeld: false,
      answer,
      settle: (response) => end(() => resolve(response)),
      fail: (error) => end(() => reject(error)),
    };
    // Avoids an unhandled rejection when the editor has disconnected.
    answer.catch(() => undefined);
    this.#open.add(prompt);
    return prompt;
  }

  /** Assigns a new command to the prompt. */
  sentAs(prompt: OwnPrompt, commandId: string): void {
    prompt.commandId = commandId;
    prompt.stage = 'sent';
    prompt.isRevoking = false;
    prompt.isHeld = false;
    this.#sent.add(commandId);
    const [oldest] = this.#sent;
    if (this.#sent.size > REMEMBERED_MAX && oldest !== undefined) this.#sent.delete(oldest);
  }

  /** Holds the prompt until the run ends. */
  hold(prompt: OwnPrompt): void {
    prompt.commandId = '';
    prompt.stage = 'waiting';
    prompt.isRevoking = false;
    prompt.isHeld = true;
  }

  /** Whether a command carries one of these prompts, including those that have ended. */
  has(commandId: string): boolean {
    return this.#sent.has(commandId);
  }

  /**
   * Processes a record.
   * @returns the prompts that were still queued when a run ended. The caller sends them again to start the next run.
   */
  take(record: JournalRecord): OwnPrompt[] {
    const left: OwnPrompt[] = [];
    for (const event of record.events) this.#note(event, left);
    if (topState(record.state) === 'daemon_idle') this.#settleRunning({ stopReason: 'end_turn' });
    if (hasEnded(record.state)) {
      // Prompts recorded after the end of the run also wait for the next one.
      for (const one of this.#open) if (one.stage === 'waiting' && !left.includes(one)) left.push(one);
    }
    return left;
  }

  #note(event: SessionEvent, left: OwnPrompt[]): void {
    switch (event.type) {
      case 'prompt_received':
      case 'message_injected':
        this.#move(event.command_id, 'running');
        return;
      case 'followup_received':
      case 'steering_received':
        this.#move(event.command_id, 'waiting');
        return;
      case 'injection_blocked':
        this.#find(event.command_id)?.settle({ stopReason: 'end_turn', _meta: meta({ blocked: event.reason }) });
        return;
      case 'control_outcome': {
        if (event.control !== 'revoke' || event.status !== 'revoked') return;
        const prompt = this.#find(event.target);
        if (prompt && !prompt.isRevoking) prompt.settle({ stopReason: 'cancelled', _meta: meta({ revoked: true }) });
        return;
      }
      case 'suspended':
        this.#settleRunning({ stopReason: 'end_turn', _meta: meta({ suspended: true }) });
        return;
      case 'agent_end': {
        const { stop_reason, run, turns, usage, cost_usd = null, error } = event;
        const result = { stop_reason, run, turns, usage, cost_usd, ...(error ? { error } : {}) };
        this.#settleRunning({ stopReason: turnEndOf(stop_reason), _meta: meta(result) });
        for (const one of this.#open) if (one.stage === 'waiting') left.push(one);
        return;
      }
    }
  }

  #settleRunning(response: PromptResponse): void {
    for (const one of [...this.#open]) if (one.stage === 'running') one.settle(response);
  }

  #move(commandId: string, stage: OwnPrompt['stage']): void {
    const prompt = this.#find(commandId);
    if (prompt) prompt.stage = stage;
  }

  #find(commandId: string): OwnPrompt | undefined {
    return [...this.#open].find((one) => !one.isHeld && one.commandId === commandId);
  }
}

function meta(result: Readonly<Record<string, unknown>>): { coxswain: Readonly<Record<string, unknown>> } {
  return { coxswain: result };
}
