/**
 * What an editor can choose for a session: the persona's mode and the model. A session that is under way has another one
 * from the next prompt on that begins a run.
 */
import type { SessionConfigOption, SessionModeState } from '@agentclientprotocol/sdk';
import type { PromptOptions } from '@coxswain/client';
import { cutGraphemes, type EventOf, modelName } from '@coxswain/protocol';
import { invalidParams } from './request-errors.ts';
import type { Choice as SavedChoice, Unsent } from './unsent-settings.ts';

/** Stands for no mode of the persona's. */
const NO_MODE = 'default';

/** What there is to choose from. */
export interface Offered {
  /** Models by name; the first is the one that is used where nobody chooses. */
  readonly models: readonly string[];
  /** The persona's modes with what they say. */
  readonly modes: Readonly<Record<string, { readonly prompt: string }>>;
  /** The mode that is used where nobody chooses. */
  readonly mode: string | undefined;
  /** Where the models that are offered are reached. */
  readonly baseUrl: string | undefined;
}

interface Choice {
  readonly model: string | undefined;
  /** Undefined where it is none of the persona's. */
  readonly mode: string | undefined;
}

/** One session's choice. */
export class SessionSettings {
  readonly #offered: Offered;
  #modes: Offered['modes'];
  #chosen: Choice;
  /** What the session has been told; null where it is still to be started. */
  #told: Choice | null = null;
  /** Its run never ends, so that none begins. */
  #isDaemon = false;

  constructor(offered: Offered) {
    this.#offered = offered;
    this.#modes = offered.modes;
    this.#chosen = { model: offered.models[0], mode: offered.mode };
  }

  get model(): string | undefined {
    return this.#chosen.model;
  }

  /** Undefined where it is none of the persona's. */
  get mode(): string | undefined {
    return this.#chosen.mode;
  }

  /** Whether the session idles between jobs, so that all it does is one run. */
  get isDaemon(): boolean {
    return this.#isDaemon;
  }

  /** The session is being told all that is chosen now. @returns what is called where it could not be told. */
  tell(): () => void {
    const before = this.#told;
    const telling = this.#chosen;
    this.#told = telling;
    return () => {
      if (this.#told === telling) this.#told = before;
    };
  }

  /** What the next prompt has to say beside its text. */
  get changes(): Partial<Pick<PromptOptions, 'model' | 'mode' | 'baseUrl'>> {
    const told = this.#told;
    if (!told) return {};
    const { model, mode } = this.#chosen;
    const { baseUrl } = this.#offered;
    return {
      ...(model === undefined || model === told.model ? {} : { model, ...(baseUrl === undefined ? {} : { baseUrl }) }),
      ...(mode === told.mode ? {} : { mode: mode ?? null }),
    };
  }

  /** Whether the next prompt has to begin a run. */
  get hasChanges(): boolean {
    return Object.keys(this.changes).length > 0;
  }

  /** The choice in the form in which it is saved, with what it replaces. */
  get unsent(): Pick<Unsent, 'chosen' | 'replaces'> {
    return { chosen: { ...this.#chosen }, replaces: this.#told === null ? null : { ...this.#told } };
  }

  /**
   * Chooses again what an earlier connection of an editor has chosen. A setting that was changed since keeps its newer
   * value, and so does a mode that the persona no longer has.
   */
  restore({ chosen, replaces }: Pick<Unsent, 'chosen' | 'replaces'>): void {
    const told = this.#told;
    if (this.#isDaemon || (told === null) !== (replaces === null)) return;
    const holds = (setting: keyof SavedChoice) => told === null || told[setting] === replaces?.[setting];
    const hasMode = chosen.mode === undefined || Object.hasOwn(this.#modes, chosen.mode);
    this.#chosen = {
      model: holds('model') && chosen.model !== undefined ? chosen.model : this.#chosen.model,
      mode: holds('mode') && hasMode ? chosen.mode : this.#chosen.mode,
    };
  }

  /**
   * Takes in what the session says of itself: whoever has chosen it.
   * @returns whether that is news to an editor.
   */
  learn(event: EventOf<'persona_changed'> | EventOf<'settings_changed'>): boolean {
    const before = JSON.stringify([this.options, this.#chosen]);
    const told = this.#told ?? this.#chosen;
    if (event.type === 'settings_changed') {
      const { mode = told.mode ?? null } = event.settings;
      this.#becomes({ model: modelName(event.settings) ?? told.model, mode: mode ?? undefined });
    } else {
      const { definition, mode, model, daemon } = event.provision;
      this.#modes = definition.modes ?? {};
      this.#isDaemon = daemon;
      this.#becomes({ model: model.name, mode });
    }
    return JSON.stringify([this.options, this.#chosen]) !== before;
  }

  /** What is chosen and not told yet stays chosen. */
  #becomes(told: Choice): void {
    const { model, mode } = this.#chosen;
    const before = this.#told ?? this.#chosen;
    this.#chosen = {
      model: model === before.model ? told.model : model,
      mode: mode === before.mode ? told.mode : mode,
    };
    this.#told = told;
  }

  /** @throws RequestError for a mode that there is not, or of a session that can have no other any more. */
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

  /** @throws RequestError for an option or a value that there is not, or of a session that can have no other any more. */
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

  /** The modes; null where the persona has none, or where they are not known yet. */
  get modes(): SessionModeState | null {
    if (Object.keys(this.#modes).length === 0) return null;
    const available = this.#modeIds().map((id) => ({ id, name: id, description: this.#describe(id) }));
    return { currentModeId: this.mode ?? NO_MODE, availableModes: available };
  }

  /** The same as options, and the models. */
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

  /** Those that are offered, and the session's own, which another may have chosen. */
  #models(): string[] {
    const own = [this.#told?.model, this.#chosen.model].filter((name) => name !== undefined);
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
