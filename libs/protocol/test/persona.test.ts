/** Personas: one strict schema. */
import { describe, expect, test } from 'vitest';
import { modeProblem, Persona, type PersonaInput, personaProblem, readPersona } from '../src/mod.ts';

const read = (persona: PersonaInput) => Persona.parse(persona);

/** The path of the first problem. */
function problem(persona: unknown): string {
  const parsed = Persona.safeParse(persona);
  if (parsed.success) return 'ok';
  const [issue] = parsed.error.issues;
  return issue?.code === 'unrecognized_keys' ? [...issue.path, issue.keys[0]].join('.') : (issue?.path.join('.') ?? '');
}

describe('a persona', () => {
  test('needs a name and nothing else', () => {
    expect(read({ name: 'coder' })).toEqual({ name: 'coder', prompt: '' });
  });

  test('may have all implemented members', () => {
    const persona = read({
      name: 'coder',
      version: '7',
      description: 'Writes code.',
      model: {
        name: 'anthropic/claude',
        temperature: 0.5,
        max_output_tokens: 100,
        provider_options: { anthropic: { a: 1 } },
      },
      prompt: 'You write code.',
      modes: { careful: { prompt: 'Be careful.' } },
      tools: { allow: ['*'], deny: ['run_*'] },
      mcp_servers: { files: { command: 'npx', args: ['x'], env: { A: 'b' } }, web: { url: 'https://example.com/mcp' } },
      permissions: { rules: [{ tool: 'files__*', when: 'path =~ "^/tmp/"', action: 'allow' }], default: 'deny' },
      limits: { max_turns: 10, parallel_calls: 4 },
      steering: { steering: 'one_at_a_time' },
      hooks: [{ event: 'PreToolUse', pattern: 'run_*', deny: 'not here' }],
      on_finish: './done.ts#told',
      daemon: {},
    });
    expect(personaProblem(persona)).toBeNull();
    expect(persona.steering).toEqual({ steering: 'one_at_a_time', followups: 'one_at_a_time' });
  });

  test('may give its model by name alone, and its tools as a list', () => {
    expect(read({ name: 'a', model: 'openai/gpt', tools: ['read_*'] })).toMatchObject({
      model: { name: 'openai/gpt' },
      tools: { allow: ['read_*'], deny: [] },
    });
  });

  test.each([
    ['no name', {}, 'name'],
    ['a hostile name', { name: 'a.b' }, 'name'],
    ['an unknown key', { name: 'a', promt: '' }, 'promt'],
    ['an unknown key inside', { name: 'a', limits: { turns: 1 } }, 'limits.turns'],
    [
      'an unknown key of a rule',
      { name: 'a', permissions: { rules: [{ tool: '*', action: 'ask', if: '' }] } },
      'permissions.rules.0.if',
    ],
    [
      'a rule that does not parse',
      { name: 'a', permissions: { rules: [{ tool: '*', when: 'x', action: 'ask' }] } },
      'permissions.rules.0.when',
    ],
    ['a model without a provider', { name: 'a', model: 'gpt' }, 'model'],
    ['no turns', { name: 'a', limits: { max_turns: 0 } }, 'limits.max_turns'],
    ['more parallel calls than a batch has', { name: 'a', limits: { parallel_calls: 65 } }, 'limits.parallel_calls'],
    ['no tokens', { name: 'a', limits: { tokens: 0 } }, 'limits.tokens'],
    ['half a token', { name: 'a', limits: { tokens: 1.5 } }, 'limits.tokens'],
    ['more tokens than are counted', { name: 'a', limits: { tokens: 1e12 + 1 } }, 'limits.tokens'],
    ['less than a micro-USD', { name: 'a', limits: { usd: 0.000_000_9 } }, 'limits.usd'],
    ['more USD than are counted', { name: 'a', limits: { usd: 1_000_001 } }, 'limits.usd'],
    ['no time', { name: 'a', limits: { wall_time_ms: 0 } }, 'limits.wall_time_ms'],
    ['more than a year', { name: 'a', limits: { wall_time_ms: 31_536_000_001 } }, 'limits.wall_time_ms'],
    ['a threshold of nothing', { name: 'a', budget_thresholds: [0] }, 'budget_thresholds.0'],
    ['a threshold beyond the end', { name: 'a', budget_thresholds: [101] }, 'budget_thresholds.0'],
    ['half a percent', { name: 'a', budget_thresholds: [50.5] }, 'budget_thresholds.0'],
    ['a stop text of nothing', { name: 'a', stop_when: [{ text: '' }] }, 'stop_when.0.text'],
    ['a stop text that does not compile', { name: 'a', stop_when: [{ text: '/(/' }] }, 'stop_when.0.text'],
    // RE2 has no back-references: they cannot be matched in linear time.
    ['a stop text that is not linear', { name: 'a', stop_when: [{ text: '/(a)\\1/' }] }, 'stop_when.0.text'],
    ['a stop tool of nothing', { name: 'a', stop_when: [{ tool: '' }] }, 'stop_when.0.tool'],
    ['a hostile predicate', { name: 'a', stop_when: [{ predicate: 'a b' }] }, 'stop_when.0.predicate'],
    ['a stop condition that is none', { name: 'a', stop_when: [{ turns: 3 }] }, 'stop_when.0'],
    ['two conditions in one', { name: 'a', stop_when: [{ text: 'x', tool: 'y' }] }, 'stop_when.0'],
    ['a hostile mode', { name: 'a', modes: { 'a b': { prompt: '' } } }, 'modes.a b'],
    ['a drain that is none', { name: 'a', steering: { followups: 'some' } }, 'steering.followups'],
  ])('is rejected with %s', (_name, persona, path) => {
    expect(problem(persona)).toBe(path);
  });
});

describe('the targets of its hand-offs', () => {
  test.each<[string, string[], object | null]>([
    ['each once', ['b', 'c'], null],
    ['itself', ['b', 'a'], { path: ['handoffs', 1], words: 'a persona cannot hand off to itself' }],
    ['one twice', ['b', 'c', 'b'], { path: ['handoffs', 2], words: 'b is named twice' }],
  ])('%s', (_, handoffs, expected) => {
    const found = personaProblem(read({ name: 'a', handoffs }));
    expect(found && { path: found.path, words: found.words }).toEqual(expected);
  });

  test('definitions pinned before the check stay readable', () => {
    expect(read({ name: 'a', handoffs: ['b', 'b'] }).handoffs).toEqual(['b', 'b']);
  });
});

describe('names of properties of Object.prototype', () => {
  const named = (name: string): unknown =>
    JSON.parse(
      `{"name": "${name}", "modes": {"${name}": {"prompt": "x"}}, "steps": [{"name": "${name}", "prompt": "x"}]}`,
    );

  test.each(['constructor', 'toString', 'hasOwnProperty'])('are ordinary names: %s', (name) => {
    const persona = readPersona(named(name));
    expect(persona).toMatchObject({ ok: true, data: { name, modes: { [name]: { prompt: 'x' } }, steps: [{ name }] } });
    if (persona.ok) expect(modeProblem(persona.data, name)).toBeNull();
    expect(modeProblem({ name: 'a', modes: {} }, name)).toContain(`has no mode ${name}`);
  });

  test('are rejected with their path for a mode or a server that would be lost', () => {
    expect(readPersona(named('__proto__'))).toEqual({
      ok: false,
      problems: [{ path: ['modes', '__proto__'], kind: 'value', words: 'this name is not allowed here' }],
    });
    const server = JSON.parse('{"name": "a", "mcp_servers": {"s": {"command": "x", "env": {"__proto__": "y"}}}}');
    expect(readPersona(server)).toMatchObject({ problems: [{ path: ['mcp_servers', 's', 'env', '__proto__'] }] });
    expect(readPersona({ name: '__proto__', steps: [{ name: '__proto__', prompt: 'x' }] })).toMatchObject({ ok: true });
  });
});

describe('the compaction settings', () => {
  test('have defaults', () => {
    expect(read({ name: 'a', compaction: {} }).compaction).toEqual({ strategy: 'summary', keep_turns: 2 });
  });

  test.each<[string, Record<string, unknown>, string]>([
    ['an unknown strategy', { compaction: { strategy: 'forget' } }, 'compaction.strategy'],
    ['no turns less than none', { compaction: { keep_turns: -1 } }, 'compaction.keep_turns'],
    ['more turns than are counted', { compaction: { keep_turns: 101 } }, 'compaction.keep_turns'],
    ['a reserve of nothing', { compaction: { reserve: 0 } }, 'compaction.reserve'],
    ['a window that takes no prompt', { model: { name: 'a/b', context_window: 255 } }, 'model'],
    ['a transform_context that does nothing', { transform_context: {} }, 'transform_context'],
    ['a transform_context that nobody knows', { transform_context: { drop: true } }, 'transform_context'],
    ['results without a character', { transform_context: { max_tool_result_chars: 0 } }, 'transform_context'],
  ])('reject %s by name', (_, part, path) => {
    const parsed = Persona.safeParse({ name: 'a', ...part });
    expect(parsed.error?.issues.map((issue) => issue.path.join('.'))).toEqual(
      expect.arrayContaining([expect.stringContaining(path)]),
    );
  });

  test('accept the maximum of turns', () => {
    expect(read({ name: 'a', compaction: { keep_turns: 100 } }).compaction?.keep_turns).toBe(100);
  });
});
