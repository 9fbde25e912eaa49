/** The client in a bundle for browsers: nothing of Node, nothing of the bus. */
import { runInNewContext } from 'node:vm';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';
import { describe, expect, test } from 'vitest';

async function bundled(source: string, minify = false) {
  const { metafile, outputFiles } = await build({
    stdin: { contents: source, resolveDir: import.meta.dirname },
    bundle: true,
    minify,
    write: false,
    metafile: true,
    format: 'iife',
    globalName: 'client',
    // What is Node's is an error here, and not left out.
    platform: 'browser',
    conditions: ['coxswain-source', 'browser'],
    logLevel: 'silent',
  });
  return { inputs: Object.keys(metafile.inputs), text: outputFiles[0]?.text ?? '' };
}

const ALL = `export * from 'SOURCE'`;

describe.each(['../src/http.ts', '@coxswain/client', '@coxswain/client/http'])('%s', (source) => {
  test('is bundled for browsers without Node and without the bus', async () => {
    const { inputs, text } = await bundled(ALL.replace('SOURCE', source));
    expect(inputs.filter((input) => /node_modules\/@nats-io\//.test(input))).toEqual([]);
    // Run among what browsers have, and nothing else.
    const browser = {
      TextEncoder,
      TextDecoder,
      URL,
      AbortController,
      crypto,
      fetch,
      setTimeout,
      clearTimeout,
      performance,
    };
    const client = runInNewContext(`${text}; client`, browser) as typeof import('../src/http.ts');
    expect(client.newCommandId()).toMatch(/^[0-9a-f-]{36}$/);
    expect(client.createEventTranslator()).toHaveProperty('record');
    expect(new client.CoxswainError('code', 'words')).toMatchObject({ code: 'code' });
  });
});

test('the whole client has at most 252 kB minified and 80 kB compressed', async () => {
  const { text } = await bundled(ALL.replace('SOURCE', '@coxswain/client'), true);
  expect(Buffer.byteLength(text)).toBeLessThanOrEqual(252_000);
  expect(gzipSync(text).length).toBeLessThanOrEqual(80_000);
});

test('what needs Node or the bus is told when it is bundled, and not in the browser', async () => {
  await expect(bundled(ALL.replace('SOURCE', '../src/mod.ts'))).rejects.toThrow(/node:|Could not resolve/);
  const serves = bundled(`import { serveTool } from '@coxswain/client'; console.log(serveTool)`);
  await expect(serves).rejects.toThrow('No matching export');
});
