/**
 * The journals of the example crews as golden traces: each crew is played on a stage, with its own personas, script, input and
 * real tools, and the journal of every session of its tree is kept. `npm run trace:record` writes them anew.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Clock, ToolSource } from '@coxswain/ports';
import { decodeRecord, type EventOf, type EventType, type JournalRecord } from '@coxswain/protocol';
import type { RealWork, Scenario } from '../traces/scenario.ts';
import { Stage } from '../traces/stage.ts';
import type { StageBus } from '../traces/stage-bus.ts';
import { traceBytes } from '../traces/trace-files.ts';
import { type PreparedCrew, prepareCrew } from './example-crew.ts';
import { realTools } from './real-tools.ts';

/** Where they lie, a folder for each crew. */
export const CREW_TRACES = join(import.meta.dirname, 'traces');

/** A crew at work on a stage. */
export class PlayedCrew {
  readonly #stage: Stage;
  /** The id of the session at the top. */
  readonly id: string;

  constructor(stage: Stage, id: string) {
    this.#stage = stage;
    this.id = id;
  }

  /** Sends the session at the top a command. */
  async send(verb: string, body: { readonly [field: string]: string }): Promise<void> {
    await this.#stage.send(verb, body, undefined, this.id);
  }

  /** Lets time pass. */
  async wait(ms: number): Promise<void> {
    await this.#stage.wait(ms);
  }

  /** A person decides all calls that wait in the tree, and what comes of it has its time. @returns the tools of those calls. */
  async decide(decision: 'allow' | 'deny', reason?: string): Promise<string[]> {
    const tools: string[] = [];
    for (const [session, { events }] of await this.journals()) {
      const decided = new Set(events('approval_decided').map(({ call_id }) => call_id));
      for (const { call_id, tool } of events('approval_requested').filter((asked) => !decided.has(asked.call_id))) {
        tools.push(tool);
        await this.#stage.send('approve', { call_id, decision, ...(reason ? { reason } : {}) }, undefined, session);
      }
    }
    await this.wait(10_000);
    return tools;
  }

  /** The journals of the tree by session, each parent before its children. */
  async journals(): Promise<Map<string, PlayedJournal>> {
    const all = new Map<string, PlayedJournal>();
    const waiting: [id: string, persona: string][] = [[this.id, 'top']];
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      const [id] = next;
      const bytes = await this.#stage.records(id);
      const journal = new PlayedJournal(bytes);
      all.set(id, journal);
      waiting.push(
        ...journal.events('child_started').map(({ session, persona }) => [session, persona] as [string, string]),
      );
    }
    return all;
  }
}

/** One journal. */
export class PlayedJournal {
  readonly bytes: readonly Uint8Array[];
  readonly records: readonly JournalRecord[];

  constructor(bytes: readonly Uint8Array[]) {
    this.bytes = bytes;
    this.records = bytes.map((one) => decodeRecord(one));
    this.events = this.events.bind(this);
  }

  /** Its events of a type. */
  events<T extends EventType>(type: T): EventOf<T>[] {
    return this.records.flatMap(({ events }) => events).filter((event): event is EventOf<T> => event.type === type);
  }

  /** How its newest run ended, and what was said last. */
  get end(): { readonly reason: string | undefined; readonly said: string } {
    const said = this.events('message_complete').at(-1)?.message.content ?? [];
    const text = said.map((part) => (part.type === 'text' ? part.text : '')).join('');
    return { reason: this.events('agent_end').at(-1)?.stop_reason, said: text };
  }
}

/** How an example crew is played. */
export interface CrewPlay {
  /** The folder below examples/crews, and the one of its traces. */
  readonly name: string;
  /** The id of the session at the top. */
  readonly session: string;
  /** Tools besides those of a host. */
  readonly tools?: (prepared: PreparedCrew) => Promise<readonly ToolSource[]>;
  /** What people do, once it has been started and has had its time. */
  people(crew: PlayedCrew, prepared: PreparedCrew): Promise<void>;
}

/**
 * Plays a crew.
 * @param look is shown how it ended, while its folder is still there.
 * @returns the journals of its tree by the names that they have as traces.
 */
export async function playCrew(
  play: CrewPlay,
  look: (prepared: PreparedCrew, journals: ReadonlyMap<string, PlayedJournal>) => Promise<void> = async () => {},
  makeBus?: (clock: Clock) => StageBus,
): Promise<Map<string, PlayedJournal>> {
  const scratch = await realpath(await mkdtemp(join(tmpdir(), 'cox-crew-')));
  let stage: Stage | null = null;
  try {
    const prepared = await prepareCrew(play.name, scratch);
    const work: RealWork = realTools(prepared.root, (await play.tools?.(prepared)) ?? []);
    const scenario: Scenario = { name: play.name, shows: 'a crew', turns: [], realTools: work, play: async () => {} };
    stage = new Stage(scenario, prepared.folder, true, makeBus);
    await stage.readScript(prepared.model);
    await stage.host();
    // Its own rules count here, and none of the stage's.
    await stage.start({ ...prepared.start, permissions: prepared.start.permissions ?? { rules: [] } }, play.session);
    await stage.wait(30_000);
    const crew = new PlayedCrew(stage, play.session);
    await play.people(crew, prepared);
    const journals = namedByPersona(await crew.journals());
    await look(prepared, journals);
    return journals;
  } finally {
    stage?.close();
    await rm(scratch, { recursive: true });
  }
}

/** `planner`, `reviewer-1`, `reviewer-2`: by persona, and where several have the same, by who came first. */
function namedByPersona(journals: ReadonlyMap<string, PlayedJournal>): Map<string, PlayedJournal> {
  const personas = [...journals.values()].map((journal) => journal.events('agent_start')[0]?.persona ?? 'nobody');
  const named = new Map<string, PlayedJournal>();
  for (const [at, journal] of [...journals.values()].entries()) {
    const persona = personas[at] as string;
    const several = personas.filter((other) => other === persona).length > 1;
    const which = personas.slice(0, at + 1).filter((other) => other === persona).length;
    named.set(several ? `${persona}-${which}` : persona, journal);
  }
  return named;
}

/** The names of a crew's traces. */
export function crewTraceNames(crew: string): string[] {
  const folder = join(CREW_TRACES, crew);
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .map((file) => file.replace(/\.jsonl$/, ''))
    .sort();
}

/** A trace of a crew, byte for byte. */
export function crewTrace(crew: string, name: string): string {
  return readFileSync(join(CREW_TRACES, crew, `${name}.jsonl`), 'utf8');
}

/** A journal as its trace has it. */
export function traceText(journal: PlayedJournal): string {
  return traceBytes(journal.bytes).toString('utf8');
}

/** Puts new traces in the place of those of a crew. */
export async function writeCrewTraces(crew: string, journals: ReadonlyMap<string, PlayedJournal>): Promise<void> {
  const folder = join(CREW_TRACES, crew);
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  for (const [name, journal] of journals) await writeFile(join(folder, `${name}.jsonl`), traceText(journal));
}
