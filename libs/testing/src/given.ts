import { createReadStream } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { gatherHooks, type HookSource } from '@coxswain/adapter-hooks';
import { createModels } from '@coxswain/adapter-models';
import { outputJsonSchema, type SessionSettings } from '@coxswain/client';
import type { LoadedPersona } from '@coxswain/personas';
import type { Models } from '@coxswain/ports';
import { COMMAND_BODIES, type JsonObject } from '@coxswain/protocol';
import { linesOf } from '@coxswain/session';
import type { Journal } from './journal.ts';
import { checkKeys, inWireForm } from './known-keys.ts';
import { shown } from './match-shape.ts';
import type { CommandMove, MomentMove, Move } from './moves.ts';
import { PendingMoments } from './pending-moments.ts';
import { readScenePersona, type ScenePersona } from './scene-persona.ts';
import { type SceneTools, sceneTools } from './scene-tools.ts';
import { type Script, type ScriptedAnswer, scriptText } from './scripted-answers.ts';
import { QUIET, Stage } from './stage.ts';
import { SceneError } from './testing-errors.ts';
import { VirtualTime } from './virtual-time.ts';

/** The setup of a scene. */
export interface SceneSetup {
  /** Default: the built-in persona of sessions without one. */
  readonly persona?: ScenePersona | undefined;
  /**
   * The model's answers: a list, a whole script, or the path of a script in YAML. It replaces the model that the
   * persona names. Without it, and without `journal`, the persona's model must be a scripted one.
   */
  readonly model?: Script | readonly ScriptedAnswer[] | string | undefined;
  /** Replaces all tools that are not built in. MCP servers are not started: name their tools `server__tool` here. */
  readonly tools?: SceneTools | undefined;
  readonly hooks?: HookSource | readonly HookSource[] | undefined;
  /** Personas for delegation and hand-off. They use the same script; `matchSystem` tells them apart. */
  readonly crew?: readonly ScenePersona[] | undefined;
  /** The root folder of the built-in tools. Without it there are no built-in tools. */
  readonly root?: string | undefined;
  /** Further settings of the start: `permissions`, `limits`, `maxTurns`, `output`, … */
  readonly start?: Omit<SessionSettings, 'prompt' | 'messages' | 'persona' | 'personas' | 'model' | 'root'> | undefined;
  /**
   * The path of a recorded journal that the session continues from, as `journal.save` or `cox session export` writes
   * it.
   */
  readonly journal?: string | undefined;
  /**
   * The last record to import, from 1. A session that is cut in the middle of its work continues after the next
   * command.
   */
  readonly upTo?: number | undefined;
  /** The session's id. Default `test`. */
  readonly session?: string | undefined;
  /** The time limit of one tool or handler of the test, in milliseconds of real time. Default 30,000. */
  readonly patienceMs?: number | undefined;
  /** The time limit until the session is idle, in milliseconds of virtual time. Default 3,600,000. */
  readonly withinMs?: number | undefined;
}

/** A session under test. It needs no cleanup. */
export interface Scene {
  /**
   * Makes these moves in order. After each, it runs until the session is idle: its run has ended, or it waits for a
   * person, a signal or a time. Commands for the time when the session works ({@link atSeam}, `during`, `duringAnswer`)
   * are armed from the start.
   * @returns the whole journal; `added` is the part since the call.
   * @throws SceneError if a command cannot be sent, was never due, or was delivered elsewhere.
   */
  when(...moves: readonly Move[]): Promise<Journal>;
  /** The current journal. */
  journal(): Promise<Journal>;
}

/**
 * Creates a scene: given a persona, a scripted model, tools and hooks, or a recorded journal; when prompts and other
 * moves arrive; then the journal. It runs in memory and in virtual time, without a server. An invalid setup rejects the
 * first `when` or `journal`.
 * @throws SceneError for an unknown key, and for `upTo` without `journal`.
 */
export function given(setup: SceneSetup): Scene {
  checkSetup(setup);
  let opening: Promise<OpenScene> | null = null;
  let playing: Promise<unknown> = Promise.resolve();
  const open = () => {
    opening ??= openScene(setup);
    return opening;
  };
  return {
    when(...moves) {
      checkMoves(moves);
      const before = playing.catch(() => undefined);
      const played = before.then(async () => playAll(await open(), moves));
      playing = played;
      return played;
    },
    journal: async () => (await open()).stage.journal(0),
  };
}

interface OpenScene {
  readonly stage: Stage;
  readonly start: JsonObject;
}

async function playAll({ stage, start }: OpenScene, moves: readonly Move[]): Promise<Journal> {
  const before = (await stage.journal(0)).records.length;
  const moments = new PendingMoments(moves.filter((move): move is MomentMove => move.kind === 'moment'));
  stage.arm(moments);
  for (const move of moves) {
    if (move.kind === 'wait') await stage.wait(move.ms);
    else if (move.kind === 'command') await stage.play(move satisfies CommandMove, start);
  }
  const journal = await stage.journal(before);
  moments.check(journal.added.records);
  return journal;
}

async function openScene(setup: SceneSetup): Promise<OpenScene> {
  const lead = setup.persona === undefined ? null : await readScenePersona(setup.persona);
  const crew = await Promise.all((setup.crew ?? []).map(readScenePersona));
  const time = new VirtualTime();
  const tools = setup.tools ?? [];
  const root = setup.root === undefined ? undefined : await presentAt('root', resolve(setup.root));
  const beside = lead?.tools ?? [];
  if (beside.length > 0 && !Array.isArray(tools) && Object.keys(tools).length > 0)
    throw new SceneError('the persona exports its own tools: give more tools as a list of definitions');
  const stage = new Stage({
    session: setup.session ?? 'test',
    root,
    models: await modelsOf(setup, lead, time),
    tools: sceneTools({
      tools: beside.length > 0 ? [...beside, ...(tools as [])] : tools,
      root,
      withCrew: crew.length > 0,
    }),
    hooks: await gatherHooks(setup.hooks, 'test', QUIET),
    personas: [...(lead ? [lead] : []), ...crew],
    defaultModel: setup.model === undefined ? undefined : SCENE_MODEL,
    time,
    patienceMs: setup.patienceMs ?? 30_000,
    withinMs: setup.withinMs ?? 3_600_000,
  });
  if (setup.journal !== undefined) {
    const path = await presentAt('journal', setup.journal);
    await stage.import(() => recorded(path, setup.upTo));
  }
  await stage.start();
  const { output, ...settings } = setup.start ?? {};
  const start = {
    ...(inWireForm('start', COMMAND_BODIES.start, settings) as object),
    ...(output === undefined ? {} : { output: outputJsonSchema(output, 'start') }),
    ...(lead ? { persona: lead.persona.name } : {}),
    ...(root === undefined ? {} : { root }),
  };
  return { stage, start: start as JsonObject };
}

const SCENE_MODEL = 'scripted/scene';

/** The models of the scene. The script of the setup answers for every model name. */
async function modelsOf(setup: SceneSetup, lead: LoadedPersona | null, time: VirtualTime): Promise<Models> {
  const { model } = setup;
  // The time does not advance while a script is read: it is read once.
  const clock = { ...time.clock(), monotonicMs: () => 0 };
  if (model === undefined) {
    const named = lead?.persona.model?.name;
    if (setup.journal === undefined && !(named ?? '').startsWith('scripted/'))
      throw new SceneError(
        named === undefined
          ? 'the scene has no model: given({ model: [says("…")] })'
          : `the persona asks ${named}, and a scene calls no real model: given({ model: [says("…")] })`,
      );
    return createModels({ env: {}, clock });
  }
  const text =
    typeof model === 'string' ? await readFile(await presentAt('model', resolve(model)), 'utf8') : scriptText(model);
  const models = createModels({ env: {}, clock, readScript: async () => text });
  const name = typeof model === 'string' ? `scripted/${model}` : SCENE_MODEL;
  const problem = await models.check({ name });
  if (problem) throw new SceneError(problem.message);
  return { check: async () => null, resolve: () => models.resolve({ name }) };
}

async function* recorded(path: string, upTo = Number.POSITIVE_INFINITY): AsyncGenerator<Uint8Array> {
  let records = 0;
  for await (const line of linesOf(createReadStream(path))) {
    const isRecord =
      line.length > 0 && !/^\{"(blob|base64|end)":/.test(Buffer.from(line.subarray(0, 12)).toString('latin1'));
    if (isRecord && ++records > upTo) return;
    yield line;
  }
}

const KEYS: Readonly<Record<keyof SceneSetup, true>> = {
  persona: true,
  model: true,
  tools: true,
  hooks: true,
  crew: true,
  root: true,
  start: true,
  journal: true,
  upTo: true,
  session: true,
  patienceMs: true,
  withinMs: true,
};

function checkSetup(setup: SceneSetup): void {
  checkKeys('given({ … })', setup, Object.keys(KEYS));
  if (setup.upTo !== undefined && setup.journal === undefined)
    throw new SceneError('upTo: there is no journal to cut: given({ journal: "…" })');
}

// An invalid move would be ignored, and the test would miss it.
function checkMoves(moves: readonly Move[]): void {
  const other = moves.find((move: unknown) => !isMove(move));
  if (other === undefined && !moves.includes(other as never)) return;
  throw new SceneError(
    `when(…) takes what prompt(…), steer(…), approve(…), wait(…), atSeam(…) … make, not ${shown(other)}`,
  );
}

function isMove(move: unknown): boolean {
  return typeof move === 'object' && move !== null && ['command', 'wait', 'moment'].includes((move as Move).kind);
}

/** Resolves to the path if it exists and is of the right kind. The error names the key of the setup. */
async function presentAt(key: 'model' | 'journal' | 'root', path: string): Promise<string> {
  const found = await stat(path).catch(() => null);
  if (found === null) throw new SceneError(`${key}: there is nothing at ${path}`);
  if (found.isDirectory() !== (key === 'root'))
    throw new SceneError(`${key}: ${path} is a ${found.isDirectory() ? 'folder' : 'file'}`);
  return path;
}
