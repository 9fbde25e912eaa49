/** Converts the flags of `cox session fork` into the changes of a fork. */
import { cutGraphemes, EVERY_HOOK, type ForkChangesInput, HookId, type Json } from '@coxswain/protocol';
import { callerFolder, choosePersona, FolderTrust } from '../folders/mod.ts';
import { type Invocation, usageError } from '../line/mod.ts';
import { textOrInput } from './read-input.ts';
import { baseUrlOf, modelOf } from './start-body.ts';

/** A fork changes at most one of these, in its last copied record. */
const IN_RECORD = ['prompt', 'verdict', 'result', 'result-error'] as const;

/**
 * The changes; undefined if there are none.
 * @throws CliError with exit code 2 naming the invalid flag.
 */
export async function forkChanges({
  flags,
  env,
}: Pick<Invocation, 'flags' | 'env'>): Promise<ForkChangesInput | undefined> {
  const folder = callerFolder(env);
  const [first, second] = IN_RECORD.filter((name) => flags.on(name));
  if (second !== undefined)
    throw usageError(
      `--${second} cannot be combined with --${first}: a fork changes one thing in the record at which it starts`,
    );
  const prompt = flags.text('prompt');
  const persona = flags.text('persona');
  const model = modelOf(flags.text('model'), folder);
  const baseUrl = baseUrlOf(flags.text('base-url'));
  const verdicts = flags.inOrder(['verdict']).map(({ value }) => verdictOf(value));
  const twice = verdicts.map(([hook]) => hook).find((hook, i, all) => all.indexOf(hook) < i);
  if (twice !== undefined)
    throw usageError(`--verdict is given twice for ${twice === EVERY_HOOK ? 'every hook that is not named' : twice}`);
  const result = flags.text('result');
  const resultError = flags.text('result-error');
  const chosen =
    persona === undefined ? undefined : await choosePersona(persona, folder, new FolderTrust(folder, env, true));
  const changes: ForkChangesInput = {
    ...(prompt === undefined ? {} : { prompt: await textOrInput(prompt, 'the prompt') }),
    ...(chosen === undefined ? {} : { persona: typeof chosen === 'string' ? chosen : chosen.input }),
    ...(model === undefined ? {} : { model }),
    ...(baseUrl === undefined ? {} : { base_url: baseUrl }),
    ...(verdicts.length === 0 ? {} : { verdicts: Object.fromEntries(verdicts) }),
    ...(result === undefined ? {} : { result: { text: await textOrInput(result, 'the result') } }),
    ...(resultError === undefined
      ? {}
      : { result: { text: await textOrInput(resultError, 'the result'), is_error: true } }),
  };
  return Object.keys(changes).length === 0 ? undefined : changes;
}

/** Parses `policy={"decision":"allow"}`, or the JSON alone for every hook that is not named. */
function verdictOf(given: string): [hook: string, returns: Json] {
  const at = given.indexOf('=');
  const name = at < 0 ? '' : given.slice(0, at);
  const [hook, text] = HookId.safeParse(name).success ? [name, given.slice(at + 1)] : [EVERY_HOOK, given];
  try {
    return [hook, JSON.parse(text) as Json];
  } catch {
    throw usageError(
      `--verdict ${cutGraphemes(given, 64)}: give what the hook returns, as JSON: --verdict true, --verdict 'policy={"decision":"allow"}'`,
    );
  }
}
