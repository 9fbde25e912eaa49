/** What the guides and the examples show is read by the code that they describe. */
import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { CompactionStrategy, ModelSettings, Persona, TransformContext } from '@coxswain/protocol';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { createModels } from '../src/mod.ts';
import { FAULT_KINDS, parseScript, ScriptedTurn } from '../src/scripted/script.ts';

const repository = resolve(import.meta.dirname, '../../../..');
const guide = (name: string) => readFileSync(join(repository, 'docs/guides', name), 'utf8');
const yamlOf = (markdown: string) =>
  [...markdown.matchAll(/^```yaml\n(.*?)^```$/gms)].map((match) => match[1] as string);

test.each(yamlOf(guide('scripted-models.md')))('script in the guide: %s', async (yaml) => {
  expect(await parseScript('guide', yaml)).not.toHaveProperty('code');
});

test.each(readdirSync(join(repository, 'examples/scripts')))('examples/scripts/%s', async (file) => {
  const models = createModels({ env: {}, baseFolder: repository });
  expect(await models.check({ name: `scripted/examples/scripts/${file}` })).toBeNull();
});

test('the guide names each member of a turn and each fault', () => {
  const text = guide('scripted-models.md');
  for (const member of Object.keys(ScriptedTurn.shape)) expect(text).toContain(`\`${member}\``);
  for (const kind of FAULT_KINDS) expect(text).toContain(`\`${kind}\``);
});

test('the settings in the guide are settings', () => {
  for (const yaml of yamlOf(guide('models.md'))) {
    expect(ModelSettings.safeParse((parse(yaml) as { model: unknown }).model).error).toBeUndefined();
  }
});

test('the persona in the guide on context is a persona, and the guide names each strategy and setting', () => {
  const text = guide('context.md');
  for (const yaml of yamlOf(text)) expect(Persona.safeParse(parse(yaml)).error).toBeUndefined();
  for (const name of [...CompactionStrategy.options, ...Object.keys(TransformContext.shape)])
    expect(text).toContain(`| \`${name}\``);
});

test('the guide names each provider', async () => {
  const failure = await createModels({ env: {} }).check({ name: 'nobody/x' });
  const providers = failure?.message.replace(/^.*known providers: /, '').split(', ') ?? [];
  expect(providers).toHaveLength(8);
  for (const provider of providers) expect(guide('models.md')).toMatch(new RegExp(`^\\|.*\`${provider}\``, 'm'));
});
