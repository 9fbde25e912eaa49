/** The content of the demo: a scripted persona with real tools in a temporary folder. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { BodyInput } from '@coxswain/client';

/** The message that steers the demo. */
export const STEER = 'try a different approach';
/** The name of the slow tool in sessions. */
export const SLOW_TOOL = 'harbour__tide_forecast';

const PROMPT = 'Bring the training plan of the rowing club up to date.';

const PLAN = `# Training plan

Saturday 06:00  eight with coxswain, long distance
Sunday   07:00  technique, fours
`;

/**
 * The answers of the scripted model, in the format of docs/guides/scripted-models.md. The model plays the first
 * matching answer that it has not played yet, so the endings come first. The answer after the forecast depends on the
 * person. The session was steered (the newest message is not the prompt), the forecast was cancelled, or neither. Then
 * the edit is allowed or denied.
 */
const SCRIPT = `turns:
  - match_results: "replaced one occurrence in plan.md"
    text: "Done: plan.md has the new Saturday."
    chunk_ms: 25
    usage: {input_tokens: 846, output_tokens: 19}
  - match_results: "(?i)denied|expired"
    text: "The edit was denied, so plan.md stays as it is."
    chunk_ms: 25
    usage: {input_tokens: 846, output_tokens: 18}
  - text: "Let me see what the club has, and read the present plan."
    chunk_ms: 25
    calls:
      - {tool: list_files, args: {path: "."}}
      - {tool: read_file, args: {path: plan.md}}
    usage: {input_tokens: 412, output_tokens: 58}
  - text: "The plan depends on the tide. I ask the harbour for a forecast, which takes about a minute."
    chunk_ms: 25
    calls:
      - {tool: ${SLOW_TOOL}, args: {days: 7}}
    usage: {input_tokens: 588, output_tokens: 41}
  - match: "${PROMPT}"
    match_results: "High water"
    text: "High water is at 06:10 and 18:35. In the evening there is light for the eight: Saturday moves to 17:30, with the tide."
    chunk_ms: 25
    calls:
      - tool: edit_file
        args:
          path: plan.md
          old_text: "Saturday 06:00  eight with coxswain, long distance"
          new_text: "Saturday 17:30  eight with coxswain, long distance with the tide"
    usage: {input_tokens: 731, output_tokens: 77}
  - match: "${PROMPT}"
    text: "There is no forecast, so I plan without the tide. Saturday moves to the afternoon."
    chunk_ms: 25
    calls: &intervals
      - tool: edit_file
        args:
          path: plan.md
          old_text: "Saturday 06:00  eight with coxswain, long distance"
          new_text: "Saturday 15:00  eight with coxswain, intervals"
    usage: {input_tokens: 731, output_tokens: 77}
  - text: "Understood: I take another approach, and plan without the tide. Saturday moves to the afternoon."
    chunk_ms: 25
    calls: *intervals
    usage: {input_tokens: 731, output_tokens: 77}
`;

/** The demo's folder and the body of its start. */
export interface Story {
  readonly body: StoryStart;
  /** The folder with all files of the demo. */
  readonly folder: string;
  remove(): Promise<void>;
}

/** The fields of a start that the demo uses. */
export interface StoryStart {
  readonly prompt: string;
  readonly root: string;
  readonly model: string;
  readonly persona: Exclude<BodyInput<'start'>['persona'], string | undefined>;
}

/**
 * Writes the demo's files into a new folder.
 * @param parent the folder that contains the new one. Default: the system's folder for temporary files.
 */
export async function writeStory(parent: string = tmpdir()): Promise<Story> {
  const folder = await mkdtemp(join(parent, 'cox-demo-'));
  const root = join(folder, 'club');
  const script = join(folder, 'script.yaml');
  await mkdir(root);
  await writeFile(join(root, 'plan.md'), PLAN);
  await writeFile(join(root, 'boats.txt'), 'eight: Nordwind\nfour: Ebbe\n');
  await writeFile(script, SCRIPT);
  // The server's file is next to this one and has the same extension: .ts in a checkout, .js in a package.
  const server = fileURLToPath(new URL(`./harbour-server${extname(import.meta.url)}`, import.meta.url));
  return {
    folder,
    body: {
      prompt: PROMPT,
      root,
      model: `scripted/${script}`,
      persona: {
        name: 'clerk',
        prompt: 'You keep the papers of a rowing club.',
        mcp_servers: {
          harbour: {
            command: process.execPath,
            args: [...process.execArgv, server],
            // Arguments of this Node process, such as a TypeScript loader, are resolved from this folder.
            cwd: dirname(server),
          },
        },
        permissions: { rules: [{ tool: 'harbour__*', action: 'allow' }] },
      },
    },
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}
