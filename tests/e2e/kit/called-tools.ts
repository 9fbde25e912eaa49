/** Tools that a test serves in processes of their own, and sessions that call them. */
import { afterEach } from 'vitest';
import type { Child } from './child.ts';
import type { Fixture } from './fixture.ts';
import { type ScriptTurn, scripted } from './scripts.ts';
import { serveTool, type ToolModule, toolModule } from './tool-service.ts';

/** A tool that is served: under a name of its own, known to the fixture's host. */
export interface CalledTool {
  readonly name: string;
  readonly module: ToolModule;
  readonly service: Child;
}

/** What a test does with tools. */
export interface CalledTools {
  /** A name that only this test uses. */
  fresh(what: string): string;
  /** Serves a module, until the test ends. */
  serve(module: ToolModule, ...more: string[]): Promise<Child>;
  /** Serves `defineTool({ name, description, … })` with the rest as given, and waits until the host knows of it. */
  tool(rest: string): Promise<CalledTool>;
  /** Starts a session that may call every tool. Resolves with its id. */
  start(turns: readonly ScriptTurn[], more?: object): Promise<string>;
}

/** Ends, after each test, what it has served. */
export function calledTools(fixture: Fixture): CalledTools {
  const services: Child[] = [];
  let serial = 0;
  afterEach(async () => {
    await Promise.all(services.splice(0).map((service) => service.kill()));
  });
  const fresh = (what: string) => `${what}_${++serial}`;
  const serve = async (module: ToolModule, ...more: string[]) => {
    const service = await serveTool(fixture.bus, module, ...more);
    services.push(service);
    return service;
  };
  return {
    fresh,
    serve,
    async tool(rest) {
      const name = fresh('tool');
      const module = await toolModule(`defineTool({ name: '${name}', description: 'A tool.', ${rest} })`);
      const service = await serve(module);
      await fixture.host.says(new RegExp(`"tool":"${name}".*a tool is announced`));
      return { name, module, service };
    },
    async start(turns, more = {}) {
      const id = fresh('s');
      const permissions = { rules: [{ tool: '*', action: 'allow' }] };
      await fixture.bus.command(id, 'start', { prompt: 'Go.', model: await scripted(turns), permissions, ...more });
      return id;
    },
  };
}

/** The last answer of a script. */
export const done: ScriptTurn = { text: 'Done.' };
/** An answer of one call. */
export const calls = (name: string, args: object = {}): ScriptTurn => ({ calls: [{ tool: name, args }] });
/** The text of a result. */
export const textOf = (result: unknown) => (result as { content: { text: string }[] }).content[0]?.text;
/** A schema that takes no arguments. */
export const anything = 'inputSchema: z.object({})';
/** A function that notes `began`, waits for the gate or its signal, notes which, and answers. */
export const waiting = (text: string) =>
  `execute: async (_, { abortSignal: signal }) => {
    note('began');
    await opened(signal);
    note(signal.aborted ? 'aborted' : 'ended');
    return '${text}';
  }`;
