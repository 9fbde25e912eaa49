/** The start of an editor's session, made from the flags of `cox acp` and the editor's request. */
import { type BodyInput, ReceiptTimeoutError, type Session } from '@coxswain/client';
import type { McpServers, StandIns } from '@coxswain/protocol';
import { callerFolder } from '../instance/state-dir.ts';
import { CliError, EXIT } from '../line/cli-error.ts';
import type { Invocation } from '../line/command-spec.ts';
import { modelOf, startBody } from '../run/start-body.ts';
import { ACP_BOUNDS } from './acp-bounds.ts';
import type { WirePrompt } from './prompt-content.ts';
import type { Choices, SessionSettings } from './session-settings.ts';

/** The editor's settings of one session. */
export interface EditorStart {
  readonly root: string;
  readonly mcpServers: McpServers;
  readonly settings: SessionSettings;
  /** Built-in tools that the editor runs itself. */
  readonly standIns: StandIns;
}

type Flags = Pick<Invocation, 'flags' | 'env'>;

/**
 * The choices of an editor.
 * @throws CliError with exit code 2 naming the flag that is wrong or missing.
 */
export async function readChoices({ flags, env }: Flags): Promise<Choices> {
  const { model, mode, persona, base_url: baseUrl } = await startBody({ flags, env }, 'a prompt', false);
  const own = typeof persona === 'object' ? persona.model : undefined;
  const first = model ?? (typeof own === 'object' ? own.name : own);
  const others = flags.inOrder(['offer-model']).map(({ value }) => modelOf(value, callerFolder(env)));
  const models = [...new Set([first, ...others].filter((name) => name !== undefined))];
  return { models, modes: (typeof persona === 'object' ? persona.modes : undefined) ?? {}, mode, baseUrl };
}

/**
 * Sends the start of a session. @throws CliError `no_host` if no session host accepts it in time; errors of sending.
 */
export async function sendStart(
  { flags, env }: Flags,
  session: Session,
  prompt: WirePrompt,
  id: string,
  { root, mcpServers, settings, standIns }: EditorStart,
): Promise<void> {
  const {
    model: flagged,
    mode: _mode,
    prompt: _prompt,
    mcp_servers,
    ...body
  } = await startBody({ flags, env }, '', false);
  const { model, mode } = settings;
  // A model that the editor and the flags leave unchanged comes from the persona, with all its settings.
  const isPersonas = flagged === undefined && model === (await readChoices({ flags, env })).models[0];
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
    throw new CliError(EXIT.error, 'no_host', message);
  }
}
