/** The start of an editor's session, made from the settings of the service and the editor's request. */
import { type BodyInput, CoxswainError, ReceiptTimeoutError, type Session } from '@coxswain/client';
import type { McpServers, StandIns } from '@coxswain/protocol';
import { ACP_BOUNDS } from './acp-bounds.ts';
import type { WirePrompt } from './prompt-content.ts';
import type { Choices, SessionSettings } from './session-settings.ts';

/** The settings of new sessions. An editor may choose another model and mode. */
export interface StartSettings {
  /** The start of a session, without a prompt. The editor names the root. */
  readonly body: Omit<BodyInput<'start'>, 'prompt' | 'messages' | 'root'>;
  /** Models that the editor may choose, in addition to the model of the body or its persona. */
  readonly otherModels: readonly string[];
}

/** The editor's settings of one session. */
export interface EditorStart {
  readonly root: string;
  readonly mcpServers: McpServers;
  readonly settings: SessionSettings;
  /** Built-in tools that the editor runs itself. */
  readonly standIns: StandIns;
}

/** The models and modes that an editor may choose. The first model is the one of the settings. */
export function choicesOf({ body, otherModels }: StartSettings): Choices {
  const { model, mode, persona, base_url: baseUrl } = body;
  const own = typeof persona === 'object' ? persona.model : undefined;
  const first = model ?? (typeof own === 'object' ? own.name : own);
  const models = [...new Set([first, ...otherModels].filter((name) => name !== undefined))];
  return { models, modes: (typeof persona === 'object' ? persona.modes : undefined) ?? {}, mode, baseUrl };
}

/**
 * Sends the start of a session. @throws CoxswainError `no_host` if no session host accepts it in time; errors of
 * sending.
 */
export async function sendStart(
  session: Session,
  prompt: WirePrompt,
  id: string,
  given: StartSettings,
  { root, mcpServers, settings, standIns }: EditorStart,
): Promise<void> {
  const { model: givenModel, mode: _mode, mcp_servers, ...body } = given.body;
  const { model, mode } = settings;
  // A model that neither the editor nor the settings change comes from the persona, with all its settings.
  const isPersonas = givenModel === undefined && model === choicesOf(given).models[0];
  const start: BodyInput<'start'> = {
    ...body,
    ...(typeof prompt === 'string' ? { prompt } : { messages: [...prompt] }),
    root,
    ...(isPersonas || model === undefined ? {} : { model }),
    ...(mode === undefined ? {} : { mode }),
    mcp_servers: { ...mcp_servers, ...mcpServers },
    ...(Object.keys(standIns).length === 0 ? {} : { stand_ins: standIns }),
  };
  try {
    await session.wire.send('start', start, { id, wait: 'accepted', timeoutMs: ACP_BOUNDS.acceptedWithinMs });
  } catch (error) {
    if (!(error instanceof ReceiptTimeoutError)) throw error;
    const message = 'no_host: no session host on this bus accepted the prompt; run one with cox up --nats URL';
    throw new CoxswainError('no_host', message);
  }
}
