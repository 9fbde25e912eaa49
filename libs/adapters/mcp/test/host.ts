/** A host that opens the MCP servers it is given, says so, and stays until it is killed. */
import { McpServers, sessionRef } from '@coxswain/protocol';
import { createMcpTools } from '../src/mod.ts';

const [root, servers] = process.argv.slice(2) as [string, string];
const spec = { ref: sessionRef('s1'), root, mcpServers: McpServers.parse(JSON.parse(servers)) };
const toolset = await createMcpTools().open(spec, new AbortController().signal);
process.stdout.write('call' in toolset ? `open ${toolset.tools.length}\n` : `failed ${toolset.message}\n`);
setInterval(() => {}, 60_000);
