/**
 * The settings that an editor can choose for a session: the persona's mode and the model. A choice during a session
 * takes effect with the next prompt that starts a run.
 */
import type { SessionConfigOption, SessionModeState } from '@agentclientprotocol/sdk';
import type { PromptOptions } from '@coxswain/client';
import { cutGraphemes, type EventOf, modelName } from '@coxswain/protocol';
import { invalidParams } from './request-errors.ts';
import type { Choice as SavedChoice, Unsent } from './unsent-settings.ts';

/** The option for no mode, unless the persona has a mode of this name. */
const NO_MODE = 'default';

/** The available choices. */
export interface Choices {
  /** Model names. The first one is the default. */
  readonly models: readonly string[];
  /** The persona's modes with their prompts. */
  readonly modes: Readonly<Record<string, { readonly prompt: string }>>;
  /** The default mode. */
  readonly mode: string | undefined;
  /** The base URL of the offered models. */
  readonly baseUrl: string | undefined;
}

interface Choice {
  readonly model: string | undefined;
  /** Undefined for no mode. */
  readonly mode: string | undefined;
}

/** The chosen settings of one session. */
export class SessionSettings {
  readonly #offered: Choices;
  #modes: Choices['modes'];
  #chosen: Choice;
  /** The settings that the session has; null before its start. */
  #sent: Choice | null = null;
  /** The session's run never ends, so no new run starts. */
  #isDaemon = false;

  constructor(offered: Choices) {
    this.#offered = offered;
    this.#modes = offered.modes;
    this.#chosen = { model: offered.models[0], mode: offered.mode };
  }

  get model(): string | undefined {
    return this.#chosen.model;
  }

  /** Undefined for no mode. */
  get mode(): string | undefined {
    return this.#chosen.mode;
  }

  /** Whether the session waits between jobs in a run that does not end. */
  get isDaemon(): boolean {
    return this.#isDaemon;
  }

  /** Marks the current choice as sent. @returns a function that undoes this if sending fails. */
  markSent(): () => void {
    const before = this.#sent;
    const sending = this.#chosen;
    this.#sent = sending;
    return () => {
      if (this.#sent === sending) this.#sent = before;
    };
  }

  /** The changed settings that the next prompt must carry. */
  get changes(): Partial<Pick<PromptOptions, 'model' | 'mode' | 'baseUrl'>> {
    const sent = this.#sent;
    if (!sent) return {};
    const { model, mode } = this.#chosen;
    const { baseUrl } = this.#offered;
    return {
      ...(model === undefined || model === sent.model ? {} : { model, ...(baseUrl === undefined ? {} : { baseUrl }) }),
      ...(mode === sent.mode ? {} : { mode: mode ?? null }),
    };
  }

  /** Whether the next prompt must start a run. */
  get hasChanges(): boolean {
    return Object.keys(this.changes).length > 0;
  }

  /** The choice in its saved form, with the settings that it replaces. */
  get unsent(): Pick<Unsent, 'chosen' | 'replaces'> {
    return { chosen: { ...this.#chosen }, replaces: this.#sent === null ? null : { ...this.#sent } };
  }

  /**
   * Restores the choice of an earlier connection. A setting that changed since keeps its newer value. The mode also
   * stays if the persona no longer has the saved one.
   */
  restore({ chosen, replaces }: Pick<Unsent, 'chosen' | 'replaces'>): void {
    const sent = this.#sent;
    if (this.#isDaemon || (sent === null) !== (replaces === null)) return;
    const holds = (setting: keyof SavedChoice) => sent === null || sent[setting] === replaces?.[setting];
    const hasMode = chosen.mode === undefined || Object.hasOwn(this.#modes, chosen.mode);
    this.#chosen = {
      model: holds('model') && chosen.model !== undefined ? chosen.model : this.#chosen.model,
      mode: holds('mode') && hasMode ? chosen.mode : this.#chosen.mode,
    };
  }

  /**
   * Applies the settings that the session reports, whichever client chose them.
   * @returns whether the editor must be notified.
   */
  learn(event: EventOf<'persona_changed'> | EventOf<'settings_changed'>): boolean {
    const before = JSON.stringify([this.options, this.#chosen]);
    const sent = this.#sent ?? this.#chosen;
    if (event.type === 'settings_changed') {
      const { mode = sent.mode ?? null } = event.settings;
      this.#apply({ model: modelName(event.settings) ?? sent.model, mode: mode ?? undefined });
    } else {
      const { definition, mode, model, daemon } = event.provision;
      this.#modes = definition.modes ?? {};
      this.#isDaemon = daemon;
      this.#apply({ model: model.name, mode });
    }
    return JSON.stringify([this.options, this.#chosen]) !== before;
  }

  /** Keeps a choice that is not sent yet. */
  #apply(sent: Choice): void {
    const { model, mode } = this.#chosen;
    const before = this.#sent ?? this.#chosen;
    this.#chosen = {
      model: model === before.model ? sent.model : model,
      mode: mode === before.mode ? sent.mode : mode,
    };
    this.#sent = sent;
  }

  /** Chooses a mode. @throws RequestError for an unknown mode, or if the session's settings can no longer change. */
  chooseMode(id: string, field = 'modeId'): void {
    const mode = id === NO_MODE && !Object.hasOwn(this.#modes, NO_MODE) ? undefined : id;
    if (mode !== undefined && !Object.hasOwn(this.#modes, mode))
      throw invalidParams(
        `${field}: there is no mode "${cutGraphemes(id, 64)}"; there are ${this.#modeIds().join(', ')}`,
        field,
      );
    if (mode !== this.mode) this.#refuseOfDaemon(field, 'mode');
    this.#chosen = { ...this.#chosen, mode };
  }

  /**
   * Chooses a value of an option. @throws RequestError for an unknown option or value, or if the settings can no longer
   * change.
   */
  chooseOption(configId: string, value: unknown): void {
    if (configId === 'mode' && typeof value === 'string') {
      this.chooseMode(value, 'value');
      return;
    }
    if (configId !== 'model')
      throw invalidParams(
        `configId: there is no option "${cutGraphemes(configId, 64)}"; there are mode, model`,
        'configId',
      );
    const models = this.#models();
    if (typeof value !== 'string' || !models.includes(value))
      throw invalidParams(`value: unknown model; the offered models are ${models.join(', ')}`, 'value');
    if (value !== this.model) this.#refuseOfDaemon('value', 'model');
    this.#chosen = { ...this.#chosen, model: value };
  }

  /** The modes; null if the persona has none, or if they are not known yet. */
  get modes(): SessionModeState | null {
    if (Object.keys(this.#modes).length === 0) return null;
    const available = this.#modeIds().map((id) => ({ id, name: id, description: this.#describe(id) }));
    return { currentModeId: this.mode ?? NO_MODE, availableModes: available };
  }

  /** The modes and the models as options. */
  get options(): SessionConfigOption[] {
    const options: SessionConfigOption[] = [];
    const { modes, model: currentValue } = this;
    if (modes) {
      const { currentModeId, availableModes } = modes;
      const values = availableModes.map(({ id, ...named }) => ({ value: id, ...named }));
      options.push({
        type: 'select',
        id: 'mode',
        name: 'Mode',
        category: 'mode',
        currentValue: currentModeId,
        options: values,
      });
    }
    if (currentValue !== undefined) {
      const values = this.#models().map((name) => ({ value: name, name }));
      options.push({ type: 'select', id: 'model', name: 'Model', category: 'model', currentValue, options: values });
    }
    return options;
  }

  /** The offered models, and the session's own, which another client may have chosen. */
  #models(): string[] {
    const own = [this.#sent?.model, this.#chosen.model].filter((name) => name !== undefined);
    return [...new Set([...this.#offered.models, ...own])];
  }

  #modeIds(): string[] {
    const ids = Object.keys(this.#modes);
    return ids.includes(NO_MODE) ? ids : [NO_MODE, ...ids];
  }

  #describe(id: string): string {
    const line = this.#modes[id]?.prompt.split('\n').find((one) => one.trim() !== '');
    return line === undefined ? 'The persona without a mode' : cutGraphemes(line.trim(), 120);
  }

  #refuseOfDaemon(field: string, what: string): void {
    if (!this.#isDaemon) return;
    const message = `${field}: this session waits between jobs and starts no run that could use another ${what}`;
    throw invalidParams(`${message}; start a new session, or fork this one`, field);
  }
}
