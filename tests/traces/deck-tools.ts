/** The tools of the traces. They touch nothing but the clock that they are given, so they do the same on every machine. */
import { combineToolSources, createCodeTools, createCrewTools, createParkTool } from '@coxswain/adapter-tools';
import type { Clock, ToolSource } from '@coxswain/ports';
import { type JsonObject, LATER, type Tool } from '@coxswain/protocol';

/** A tool's name. */
export type DeckTool = keyof typeof TOOLS;

/**
 * The tools that a scenario names, in the order in which it names them; the built-in `park`, and those of crews, last.
 * @param speak whether they give inbox feedback; in a control they do not.
 */
export function deckTools(names: readonly (DeckTool | 'park' | 'crew')[], clock: Clock, speak: boolean): ToolSource {
  const own = createCodeTools(
    names
      .filter((name) => name !== 'park' && name !== 'crew')
      .map((name) => {
        const tool: Described = TOOLS[name](clock);
        const execute: Tool<JsonObject>['execute'] = (args, context) =>
          tool.execute(args, speak ? context : { ...context, feedback: () => {} });
        return { name, ...tool, execute };
      }),
  );
  const more = [
    ...(names.includes('park') ? [createParkTool()] : []),
    ...(names.includes('crew') ? [createCrewTools()] : []),
  ];
  return more.length > 0 ? combineToolSources([own, ...more]) : own;
}

type Described = Omit<Tool<JsonObject>, 'name'>;

const object = (properties: JsonObject, required: string[] = Object.keys(properties)) => ({
  type: 'object',
  properties,
  required,
});
const TIME = object({ ms: { type: 'integer' } });

const TOOLS = {
  /** Answers at once. */
  look: () => ({
    description: 'Looks.',
    inputSchema: object({ at: { type: 'string' } }),
    execute: ({ at }) => `Nothing unusual at ${at}.`,
  }),
  /** Writes in the ship's books, and says so. */
  log: () => ({
    description: 'Writes the log.',
    inputSchema: object({ books: { type: 'array', items: { type: 'string' } } }),
    execute: ({ books }, { edited }) => {
      for (const book of books as string[]) edited(book);
      return 'Written.';
    },
  }),
  /** Takes its time, and stops when it is told to. */
  haul: (clock) => ({
    description: 'Hauls.',
    inputSchema: TIME,
    execute: async ({ ms }, { abortSignal: signal }) => {
      await clock.sleep(Number(ms), signal);
      if (signal.aborted) throw new Error('told to stop');
      return `Hauled for ${ms} ms.`;
    },
  }),
  /** Takes its time, whatever it is told. */
  drift: (clock) => ({
    description: 'Drifts.',
    inputSchema: TIME,
    execute: async ({ ms }) => {
      await clock.sleep(Number(ms));
      return `Drifted for ${ms} ms.`;
    },
  }),
  /** May be sent twice, so a crash does not leave it in doubt. */
  sound: (clock) => ({
    description: 'Sounds the depth.',
    inputSchema: TIME,
    idempotent: true,
    execute: async ({ ms }, { abortSignal: signal }) => {
      await clock.sleep(Number(ms), signal);
      return '12 fathoms.';
    },
  }),
  /** Makes its whole batch run one call after another. */
  hoist: (clock) => ({
    description: 'Hoists.',
    inputSchema: TIME,
    sequential: true,
    execute: async ({ ms }, { abortSignal: signal }) => {
      await clock.sleep(Number(ms), signal);
      return `Hoisted for ${ms} ms.`;
    },
  }),
  /** Ends the run, where nothing but it was asked for. */
  moor: () => ({
    description: 'Moors.',
    inputSchema: object({}),
    terminates: true,
    execute: () => 'Moored.',
  }),
  /** Says something beside its result, so many times. */
  creak: () => ({
    description: 'Creaks.',
    inputSchema: object({ times: { type: 'integer' } }),
    execute: ({ times }, { feedback }) => {
      for (let i = 1; i <= Number(times); i++) feedback(`The mast creaked (${i}).`);
      return 'It held.';
    },
  }),
  /** Is taken up, and comes back as a command. */
  tow: () => ({
    description: 'Tows.',
    inputSchema: object({}),
    longRunning: true,
    execute: () => LATER,
    stop: () => undefined,
  }),
  /** Fails. */
  snag: () => ({
    description: 'Snags.',
    inputSchema: object({}),
    execute: () => {
      throw new Error('the line is foul');
    },
  }),
} satisfies Readonly<Record<string, (clock: Clock) => Described>>;
