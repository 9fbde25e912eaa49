import type { PromptResponse } from '@agentclientprotocol/sdk';
import { hasEnded, type JournalRecord, type SessionEvent, topState } from '@coxswain/protocol';
import { ACP_BOUNDS } from './acp-bounds.ts';
import { deferred } from './deferred.ts';
import type { WirePrompt } from './prompt-content.ts';
import { invalidParams } from './request-errors.ts';
import { turnEndOf } from './session-updates.ts';

/** One of them. */
export interface OwnPrompt {
  readonly said: WirePrompt;
  /** The command that brings it; another where it had to be sent in another way. */
  commandId: string;
  /** `sent`: nothing is recorded yet. `waiting`: it waits for its turn. `running`: a run has it. */
  stage: 'sent' | 'waiting' | 'running';
  /** It is being taken back, to be sent in another way or not at all. */
  isTakenBack: boolean;
  /** It waits here, unsent, for the end of the run: the next one begins with it. */
  isHeld: boolean;
  readonly answer: Promise<PromptResponse>;
  settle(response: PromptResponse): void;
  fail(error: unknown): void;
}

/** Commands of this editor's that are known again when they show in the journal. */
const REMEMBERED_MAX = 4_096;

/** The prompts of one session that an editor waits for: which of them the run has, and how each ends. */
export class OwnPrompts {
  readonly #open = new Set<OwnPrompt>();
  readonly #sent = new Set<string>();

  /** Those whose end has not come yet. */
  get open(): readonly OwnPrompt[] {
    return [...this.#open];
  }

  /** @throws RequestError where as many wait as may wait. */
  add(said: WirePrompt): OwnPrompt {
    if (this.#open.size >= ACP_BOUNDS.promptsWaitingMax)
      throw invalidParams(`${this.#open.size} prompts of this session are already queued`, 'sessionId', 'session_busy');
    const { promise: answer, resolve, reject } = deferred<PromptResponse>();
    const end = (done: () => void) => {
      this.#open.delete(prompt);
      done();
    };
    const prompt: OwnPrompt = {
      said,
      commandId: '',
      stage: 'sent',
      isTakenBack: false,
      isHeld: false,
      answer,
      settle: (response) => end(() => resolve(response)),
      fail: (error) => end(() => reject(error)),
    };
    // Whoever has asked may have gone.
    answer.catch(() => undefined);
    this.#open.add(prompt);
    return prompt;
  }

  /** From now on this command is the prompt's. */
  sentAs(prompt: OwnPrompt, commandId: string): void {
    prompt.commandId = commandId;
    prompt.stage = 'sent';
    prompt.isTakenBack = false;
    prompt.isHeld = false;
    this.#sent.add(commandId);
    const [oldest] = this.#sent;
    if (this.#sent.size > REMEMBERED_MAX && oldest !== undefined) this.#sent.delete(oldest);
  }

  /** It is sent when the run has ended. */
  hold(prompt: OwnPrompt): void {
    prompt.commandId = '';
    prompt.stage = 'waiting';
    prompt.isTakenBack = false;
    prompt.isHeld = true;
  }

  /** Whether a command is one of these prompts, also of one that has ended. */
  has(commandId: string): boolean {
    return this.#sent.has(commandId);
  }

  /**
   * Takes in a record.
   * @returns those that the run has left lying: nobody begins another for them.
   */
  take(record: JournalRecord): OwnPrompt[] {
    const left: OwnPrompt[] = [];
    for (const event of record.events) this.#note(event, left);
    if (topState(record.state) === 'daemon_idle') this.#settleRunning({ stopReason: 'end_turn' });
    if (hasEnded(record.state)) {
      // What has come after the run's end waits for the next one, too.
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
        if (prompt && !prompt.isTakenBack) prompt.settle({ stopReason: 'cancelled', _meta: meta({ revoked: true }) });
        return;
      }
      case 'suspended':
        this.#settleRunning({ stopReason: 'end_turn', _meta: meta({ suspended: true }) });
        return;
      case 'agent_end': {
        const { stop_reason, run, turns, usage, cost_usd = null, error } = event;
        const told = { stop_reason, run, turns, usage, cost_usd, ...(error ? { error } : {}) };
        this.#settleRunning({ stopReason: turnEndOf(stop_reason), _meta: meta(told) });
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

function meta(told: Readonly<Record<string, unknown>>): { coxswain: Readonly<Record<string, unknown>> } {
  return { coxswain: told };
}
