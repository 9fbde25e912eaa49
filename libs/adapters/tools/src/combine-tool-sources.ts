/** Combines several sources of tools into one. */
import type { ToolCall, ToolOutcome, ToolSource, Toolset, ToolsetSpec } from '@coxswain/ports';
import type { Failure, ToolDefinition } from '@coxswain/protocol';
import { unavailable } from './tool-outcome.ts';
import { messageOf } from './tool-problem.ts';

/**
 * Merges sources. They are opened concurrently, and their tools keep the order of the sources. Opening fails if one
 * source cannot be opened, or if two sources have a tool of the same name. Then the others are closed, and the first
 * failure in this order is returned. If a later change of a list adds a duplicate name, the first source with the name
 * owns it.
 *
 * Sources with `hasLowerPrecedence` come after all others, and their duplicate names are not a failure. A tool in
 * `replaces` is used instead of the tool of the same name as long as it is listed there.
 */
export function combineToolSources(sources: readonly ToolSource[]): ToolSource {
  const firm = sources.filter(({ hasLowerPrecedence }) => !hasLowerPrecedence);
  const ordered = [...firm, ...sources.filter(({ hasLowerPrecedence }) => hasLowerPrecedence)];
  return {
    async open(spec, signal) {
      const opened = await Promise.all(ordered.map((source) => openOne(source, spec, signal)));
      const toolsets = opened.filter(isToolset);
      const failure =
        opened.find((one): one is Failure => !isToolset(one)) ??
        duplicateIn(opened.slice(0, firm.length).filter(isToolset));
      if (failure === undefined) return combined(toolsets);
      const unclosed = await closeAll(toolsets);
      return unclosed.length === 0 ? failure : { ...failure, message: `${failure.message} (${unclosed.join('; ')})` };
    },
  };
}

/** A source without its tools of these names, which another source provides. */
export function withoutTools(source: ToolSource, names: ReadonlySet<string>): ToolSource {
  return {
    async open(spec, signal) {
      const opened = await source.open(spec, signal);
      if (!isToolset(opened)) return opened;
      return {
        call: opened.call.bind(opened),
        probe: opened.probe.bind(opened),
        close: opened.close.bind(opened),
        ...(opened.needsApproval ? { needsApproval: opened.needsApproval.bind(opened) } : {}),
        ...(opened.stop ? { stop: opened.stop.bind(opened) } : {}),
        // The list of a toolset may change while it is open.
        get tools() {
          return opened.tools.filter(({ name }) => !names.has(name));
        },
      };
    },
  };
}

async function openOne(source: ToolSource, spec: ToolsetSpec, signal: AbortSignal): Promise<Toolset | Failure> {
  try {
    return await source.open(spec, signal);
  } catch (error) {
    // A source must not throw. If it does, the other sources must still be closed.
    return { code: 'provision_failed', message: `a source of tools threw: ${messageOf(error)}` };
  }
}

function isToolset(opened: Toolset | Failure): opened is Toolset {
  return 'call' in opened;
}

function duplicateIn(toolsets: readonly Toolset[]): Failure | undefined {
  const sourceOf = new Map<string, string>();
  for (const { name, source } of toolsets.flatMap(({ tools }) => tools)) {
    const other = sourceOf.get(name);
    if (other !== undefined) {
      return { code: 'provision_failed', message: `two tools are named ${name}: one of ${other}, one of ${source}` };
    }
    sourceOf.set(name, source);
  }
  return undefined;
}

function combined(toolsets: readonly Toolset[]): Toolset {
  // Looked up each time, because the list of a toolset may change while it is open.
  const replacementFor = (name: string) => toolsets.find(({ replaces }) => replaces?.includes(name));
  const ownerOf = (name: string) =>
    replacementFor(name) ?? toolsets.find(({ tools }) => tools.some((tool) => tool.name === name));
  return {
    // In linear time: an MCP server may list thousands of tools.
    get tools(): readonly ToolDefinition[] {
      const byName = new Map<string, ToolDefinition>();
      for (const tool of toolsets.flatMap(({ tools }) => tools)) {
        const { name } = tool;
        if (byName.has(name)) continue;
        byName.set(name, replacementFor(name)?.tools.find((other) => other.name === name) ?? tool);
      }
      return [...byName.values()];
    },
    async call(call: ToolCall, signal: AbortSignal): Promise<ToolOutcome> {
      const owner = ownerOf(call.tool);
      return owner === undefined ? unavailable(`the tool ${call.tool} no longer exists`) : owner.call(call, signal);
    },
    async needsApproval(question, signal) {
      return (await ownerOf(question.tool)?.needsApproval?.(question, signal)) ?? true;
    },
    async probe(idempotencyKey, tool, epoch) {
      return (await ownerOf(tool)?.probe(idempotencyKey, tool, epoch)) ?? { state: 'unknown' };
    },
    async stop(idempotencyKey, tool, reason, epoch) {
      return (await ownerOf(tool)?.stop?.(idempotencyKey, tool, reason, epoch)) ?? false;
    },
    close: () => closeAll(toolsets),
  };
}

async function closeAll(toolsets: readonly Toolset[]): Promise<readonly string[]> {
  const notes = await Promise.all(
    toolsets.map(async (toolset) => {
      try {
        return await toolset.close();
      } catch (error) {
        return [messageOf(error)];
      }
    }),
  );
  return notes.flat();
}
