/** What an editor can choose for a session: the persona's mode and the model. Both are fixed by its first prompt. */
import type { SessionConfigOption, SessionModeState } from '@agentclientprotocol/sdk';
import { invalidParams } from './request-errors.ts';

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
}

/** One session's choice. */
export class SessionSettings {
  readonly #offered: Offered;
  #model: string | undefined;
  #mode: string | undefined;
  #isFixed: boolean;

  constructor(offered: Offered, isFixed = false) {
    this.#offered = offered;
    this.#model = offered.models[0];
    this.#mode = offered.mode;
    this.#isFixed = isFixed;
  }

  get model(): string | undefined {
    return this.#model;
  }

  /** Undefined where it is none of the persona's. */
  get mode(): string | undefined {
    return this.#mode;
  }

  /** From now on nothing can be chosen any more. */
  fix(): void {
    this.#isFixed = true;
  }

  /** @throws RequestError for a mode that there is not, or that comes too late. */
  chooseMode(id: string, field = 'modeId'): void {
    const mode = id === NO_MODE && !Object.hasOwn(this.#offered.modes, NO_MODE) ? undefined : id;
    if (mode !== undefined && !Object.hasOwn(this.#offered.modes, mode))
      throw invalidParams(
        `${field}: there is no mode "${id.slice(0, 64)}"; there are ${this.#modeIds().join(', ')}`,
        field,
      );
    if (mode !== this.#mode) this.#refuseLate(field, 'mode');
    this.#mode = mode;
  }

  /** @throws RequestError for an option or a value that there is not, or that comes too late. */
  chooseOption(configId: string, value: unknown): void {
    if (configId === 'mode' && typeof value === 'string') {
      this.chooseMode(value, 'value');
      return;
    }
    if (configId !== 'model')
      throw invalidParams(`configId: there is no option "${configId.slice(0, 64)}"; there are mode, model`, 'configId');
    const { models } = this.#offered;
    if (typeof value !== 'string' || !models.includes(value))
      throw invalidParams(`value: it is none of the models that are offered: ${models.join(', ')}`, 'value');
    if (value !== this.#model) this.#refuseLate('value', 'model');
    this.#model = value;
  }

  /** The modes; null where the persona has none, or where they are not known here. */
  get modes(): SessionModeState | null {
    if (Object.keys(this.#offered.modes).length === 0) return null;
    const available = this.#modeIds().map((id) => ({ id, name: id, description: this.#describe(id) }));
    return { currentModeId: this.#mode ?? NO_MODE, availableModes: available };
  }

  /** The same as options, and the models. What is fixed is offered as it is. */
  get options(): SessionConfigOption[] {
    const options: SessionConfigOption[] = [];
    const { modes } = this;
    if (modes) {
      const { currentModeId: currentValue, availableModes } = modes;
      const values = availableModes.map(({ id, ...named }) => ({ value: id, ...named }));
      options.push({ type: 'select', id: 'mode', name: 'Mode', category: 'mode', currentValue, options: values });
    }
    if (this.#model !== undefined) {
      const names = this.#isFixed ? [this.#model] : this.#offered.models;
      const values = names.map((name) => ({ value: name, name }));
      options.push({
        type: 'select',
        id: 'model',
        name: 'Model',
        category: 'model',
        currentValue: this.#model,
        options: values,
      });
    }
    return options;
  }

  #modeIds(): string[] {
    const ids = Object.keys(this.#offered.modes);
    if (this.#isFixed) return [this.#mode ?? NO_MODE];
    return ids.includes(NO_MODE) ? ids : [NO_MODE, ...ids];
  }

  #describe(id: string): string {
    const line = this.#offered.modes[id]?.prompt.split('\n').find((one) => one.trim() !== '');
    return line?.trim().slice(0, 120) ?? 'The persona as it is';
  }

  #refuseLate(field: string, what: string): void {
    if (!this.#isFixed) return;
    const message = `${field}: the ${what} of a session is fixed by its first prompt; begin a new session for another`;
    throw invalidParams(message, field, 'session_exists');
  }
}
