/** The tools of the traces. They touch nothing but the clock that they are given, so they do the same on every machine. */
import {
  type CodeTool,
  combineToolSources,
  createCodeTools,
  createCrewTools,
  createParkTool,
  LATER,
} from '@coxswain/adapter-tools';
import type { Clock, ToolSource } from '@coxswain/ports';

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
        const run: CodeTool['run'] = (args, context) =>
          tool.run(args, speak ? context : { ...context, feedback: () => {} });
        return { name, ...tool, run };
      }),
  );
  const more = [
    ...(names.includes('park') ? [createParkTool()] : []),
    ...(names.includes('crew') ? [createCrewTools()] : []),
  ];
  return more.length > 0 ? combineToolSources([own, ...more]) : own;
}

type Described = Omit<CodeTool, 'name'>;

const object = (properties: CodeTool['input_schema'], required: string[] = Object.keys(properties)) => ({
  type: 'object',
  properties,
  required,
});
const TIME = object({ ms: { type: 'integer' } });

const TOOLS = {
  /** Answers at once. */
  look: () => ({
    description: 'Looks.',
    input_schema: object({ at: { type: 'string' } }),
    run: ({ at }) => `Nothing unusual at ${at}.`,
  }),
  /** Writes in the ship's books, and says so. */
  log: () => ({
    description: 'Writes the log.',
    input_schema: object({ books: { type: 'array', items: { type: 'string' } } }),
    run: ({ books }, { edited }) => {
      for (const book of books as string[]) edited(book);
      return 'Written.';
    },
  }),
  /** Takes its time, and stops when it is told to. */
  haul: (clock) => ({
    description: 'Hauls.',
    input_schema: TIME,
    run: async ({ ms }, { signal }) => {
      await clock.sleep(Number(ms), signal);
      if (signal.aborted) throw new Error('told to stop');
      return `Hauled for ${ms} ms.`;
    },
  }),
  /** Takes its time, whatever it is told. */
  drift: (clock) => ({
    description: 'Drifts.',
    input_schema: TIME,
    run: async ({ ms }) => {
      await clock.sleep(Number(ms));
      return `Drifted for ${ms} ms.`;
    },
  }),
  /** May be sent twice, so a crash does not leave it in doubt. */
  sound: (clock) => ({
    description: 'Sounds the depth.',
    input_schema: TIME,
    traits: { idempotent: true },
    run: async ({ ms }, { signal }) => {
      await clock.sleep(Number(ms), signal);
      return '12 fathoms.';
    },
  }),
  /** Makes its whole batch run one call after another. */
  hoist: (clock) => ({
    description: 'Hoists.',
    input_schema: TIME,
    traits: { sequential: true },
    run: async ({ ms }, { signal }) => {
      await clock.sleep(Number(ms), signal);
      return `Hoisted for ${ms} ms.`;
    },
  }),
  /** Ends the run, where nothing but it was asked for. */
  moor: () => ({
    description: 'Moors.',
    input_schema: object({}),
    traits: { terminates: true },
    run: () => 'Moored.',
  }),
  /** Says something beside its result, so many times. */
  creak: () => ({
    description: 'Creaks.',
    input_schema: object({ times: { type: 'integer' } }),
    run: ({ times }, { feedback }) => {
      for (let i = 1; i <= Number(times); i++) feedback(`The mast creaked (${i}).`);
      return 'It held.';
    },
  }),
  /** Is taken up, and comes back as a command. */
  tow: () => ({
    description: 'Tows.',
    input_schema: object({}),
    traits: { long_running: true },
    run: () => LATER,
    stop: () => undefined,
  }),
  /** Fails. */
  snag: () => ({
    description: 'Snags.',
    input_schema: object({}),
    run: () => {
      throw new Error('the line is foul');
    },
  }),
} satisfies Readonly<Record<string, (clock: Clock) => Described>>;
