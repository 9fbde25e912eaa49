/** Bounds of what is said to a session: commands, and the personas and tables that come with one. */
import {
  HookTable,
  JsonObject,
  type JsonObject as JsonObjectValue,
  Permissions,
  Persona,
  PriceTable,
  parseBody,
  parseCommand,
  StopCondition,
  suspensionUntilProblem,
  type Verb,
} from '@coxswain/protocol';
import { type BoundRows, filling, least, list, most } from './row.ts';

const NOW_MS = Date.UTC(2030, 0, 1);

/** What becomes of these bodies, which have the same bound: one answer, or they differ. */
function bodies(...said: readonly (readonly [verb: Verb, value: JsonObjectValue])[]): string {
  const answers = said.map(([verb, value]) => {
    const parsed = parseBody(verb, value);
    return parsed.ok ? 'ok' : `${parsed.problem.code} ${parsed.problem.field}`;
  });
  return [...new Set(answers)].join(', ');
}
const fits = (parsed: { readonly success: boolean }): string => (parsed.success ? 'ok' : 'refused');
const persona = (more: object) => fits(Persona.safeParse({ name: 'mate', ...more }));

/** The rows for bounds of commands, and of the personas and tables in them. */
export const OF_COMMANDS: BoundRows = {
  commandBodyMaxBytes: most('body_too_large', (size) => {
    const parsed = parseCommand('steer', Buffer.alloc(size, 'x'));
    return parsed.ok ? 'ok' : parsed.problem.code;
  }),
  reasonMaxBytes: most('invalid_field reason', (size) => {
    const reason = 'r'.repeat(size);
    const call_id = 'c1';
    return bodies(
      ['cancel', { reason }],
      ['cancel_call', { call_id, reason }],
      ['suspend', { reason }],
      ['approve', { call_id, decision: 'deny', reason }],
    );
  }),
  actorMaxChars: most('invalid_field actor', (size) => bodies(['cancel', { actor: 'a'.repeat(size) }])),
  signalDataMaxBytes: most('invalid_field data', (size) =>
    bodies(['signal', { name: 'go', data: filling('text', size) }]),
  ),
  longWaitMaxMs: most('invalid_field for_ms, too far', (size) => {
    const until = new Date(NOW_MS + size).toISOString();
    const answers = [
      bodies(['suspend', { for_ms: size }]),
      suspensionUntilProblem({ until }, NOW_MS) ? 'too far' : 'ok',
    ];
    return [...new Set(answers)].join(', ');
  }),
  wakeIntervalMinMs: least('refused', (size) => persona({ daemon: { wake_interval_ms: size } })),
  toolResultInlineMinBytes: least('refused', (size) => persona({ tool_settings: [{ tool: '*', max_output: size }] })),
  keepTurnsMax: most('refused', (size) => persona({ compaction: { keep_turns: size } })),
  stopConditionsMax: most('refused', (size) => persona({ stop_when: list(size, () => ({ text: 'x' })) })),
  jsonDepthMax: most('refused', (size) => {
    let value: unknown = {};
    for (let depth = 1; depth < size; depth++) value = { inner: value };
    return fits(JsonObject.safeParse(value));
  }),
  patternMaxChars: most('refused', (size) => fits(StopCondition.safeParse({ tool: 'x'.repeat(size) }))),
  permissionRulesMax: most('refused', (size) =>
    fits(Permissions.safeParse({ rules: list(size, () => ({ tool: '*', action: 'allow' })) })),
  ),
  hooksMax: most('refused', (size) =>
    fits(HookTable.safeParse(list(size, (i) => ({ id: `h${i}`, point: 'post_turn' })))),
  ),
  pricesMax: most('refused', (size) =>
    fits(PriceTable.safeParse(list(size, () => ({ model: '*', input: 1, output: 1 })))),
  ),
};
