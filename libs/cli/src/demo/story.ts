/** What the demo plays: a scripted persona with real tools on a scratch folder. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { BodyInput } from '@coxswain/client';

/** What the demo steers with. */
export const STEER = 'try a different approach';
/** The slow tool, as sessions know it. */
export const SLOW_TOOL = 'harbour__tide_forecast';

const PROMPT = 'Bring the training plan of the rowing club up to date.';

const PLAN = `# Training plan

Saturday 06:00  eight with coxswain, long distance
Sunday   07:00  technique, fours
`;

/** The answers of the scripted model, in the format of docs/guides/scripted-models.md. */
const SCRIPT = `turns:
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
  - text: "Understood: I go on without the forecast, and take the plan in another way. Saturday moves to the afternoon."
    chunk_ms: 25
    calls:
      - tool: edit_file
        args:
          path: plan.md
          old_text: "Saturday 06:00  eight with coxswain, long distance"
          new_text: "Saturday 15:00  eight with coxswain, intervals"
    usage: {input_tokens: 731, output_tokens: 77}
  - text: "Done. On Saturday the eight rows intervals at 15:00; plan.md says so."
    chunk_ms: 25
    usage: {input_tokens: 846, output_tokens: 29}
`;

/** The demo's folder and the body of its start. */
export interface Story {
  readonly body: BodyInput<'start'>;
  /** Everything it has made. */
  readonly folder: string;
  /** Removes the folder. */
  remove(): Promise<void>;
}

/** Writes the scratch folder. */
export async function writeStory(): Promise<Story> {
  const folder = await mkdtemp(join(tmpdir(), 'cox-demo-'));
  const root = join(folder, 'club');
  const script = join(folder, 'script.yaml');
  await mkdir(root);
  await writeFile(join(root, 'plan.md'), PLAN);
  await writeFile(join(root, 'boats.txt'), 'eight: Nordwind\nfour: Ebbe\n');
  await writeFile(script, SCRIPT);
  // Beside this file and of its kind: .ts in a checkout, .js in a package.
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
            // Where what is given to this Node, such as a TypeScript loader, is found.
            cwd: dirname(server),
          },
        },
        permissions: { rules: [{ tool: 'harbour__*', action: 'allow' }] },
      },
    },
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}
