/** `cox session trace`. */
import { once } from 'node:events';
import { type BusClient, SessionNotFoundError } from '@coxswain/client';
import type { EndedSpan } from '@coxswain/protocol';
import { namedTenant } from '../../connection/mod.ts';
import { findSession, withBusOnce } from '../../instance/mod.ts';
import { type CollectedTrace, journalSource, needsBus, otlpLine } from '../../journals/mod.ts';
import { type CommandRun, EXIT, type ExitCode, usageError, writeOut } from '../../line/mod.ts';
import {
  counted,
  createStyle,
  durationText,
  type SpanTree,
  spanTrees,
  standardStreams,
  wantsColour,
  waterfall,
} from '../../terminal/mod.ts';

/** The line width without a terminal, in columns. */
const COLUMNS = 100;

/** Shows where the time of a session went, from its journal. */
export const run: CommandRun = async (invocation) => {
  const { flags, args, env } = invocation;
  const runNumber = flags.whole('run', { min: 1, max: Number.MAX_SAFE_INTEGER });
  const asked = args[0] as string;
  const source = await journalSource(asked, env);
  const show = (trace: CollectedTrace) =>
    flags.on('json') ? printLines(trace, runNumber) : draw(trace, runNumber, env);
  if (source.kind === 'session')
    return withBusOnce(invocation, false, async ({ client }) => {
      const session = await findSession(client, asked);
      const { traceOfSession } = await import('../../journals/collect-trace.ts');
      const trace = await traceOfSession(client, session.id);
      if (trace.spans.length === 0 && (await session.newest()) === null) throw new SessionNotFoundError(session.id);
      return show(trace);
    });
  const tenant = namedTenant(flags, undefined);
  const showFile = async (client: BusClient | null) => {
    const { traceOfJournal } = await import('../../journals/collect-trace.ts');
    return show(await traceOfJournal(await source.open(client), tenant));
  };
  if (!(await needsBus(invocation, [source]))) return showFile(null);
  return withBusOnce(invocation, false, ({ client }) => showFile(client));
};

/** The runs of the requested session as trees of spans. */
function treesOf({ sessionId, spans }: CollectedTrace, runNumber: number | undefined): readonly SpanTree[] {
  const isRun = ({ attributes }: EndedSpan) =>
    attributes['gen_ai.conversation.id'] === sessionId &&
    attributes['gen_ai.operation.name'] === 'invoke_agent' &&
    (runNumber === undefined || attributes['coxswain.run'] === runNumber);
  const trees = spanTrees(spans, isRun);
  if (trees.length === 0 && runNumber !== undefined)
    throw usageError(`--run ${runNumber}: the session has no such run`);
  return trees;
}

async function printLines(trace: CollectedTrace, runNumber: number | undefined): Promise<ExitCode> {
  const flat = (tree: SpanTree): EndedSpan[] => [tree.span, ...tree.below.flatMap(flat)];
  for (const span of treesOf(trace, runNumber).flatMap(flat))
    if (!writeOut(`${otlpLine(span)}\n`)) await once(process.stdout, 'drain');
  return EXIT.ok;
}

async function draw(trace: CollectedTrace, runNumber: number | undefined, env: NodeJS.ProcessEnv): Promise<ExitCode> {
  const style = createStyle(wantsColour(process.stdout, env));
  const columns = process.stdout.columns || Number(env.COLUMNS) || COLUMNS;
  const trees = treesOf(trace, runNumber);
  if (trees.length === 0) standardStreams.err('no run of the session has started yet\n');
  for (const [at, tree] of trees.entries()) {
    const { span } = tree;
    const head = `run ${String(span.attributes['coxswain.run'])} of ${trace.sessionId}`;
    const took = durationText(span.endMs - span.startMs);
    const line = `${head}, ${took}, ${new Date(span.startMs).toISOString()}, trace ${span.context.traceId}`;
    standardStreams.out(`${at > 0 ? '\n' : ''}${style.dim(line)}\n${waterfall(tree, columns, style)}`);
  }
  if (trace.leftOut > 0) standardStreams.err(`${counted(trace.leftOut, 'session')} below it are not shown\n`);
  return EXIT.ok;
}
