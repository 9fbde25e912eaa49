/** Bounds of what sessions do to each other: how many and how deep, what they hand on, and how often it is sent. */
import { BOUNDS, parseBody, textOf } from '@coxswain/protocol';
import { remindersForChild, type SessionState } from '@coxswain/turn';
import { type CrewBed, crewBed, delegate } from '../crew-bed.ts';
import { ask, call, say } from '../fake-model.ts';
import { testBed } from '../test-bed.ts';
import { type BoundRows, from, list, most } from './row.ts';

/** What calls of these sessions were refused, or `ok`. */
async function refusals(bed: CrewBed, sessions: readonly string[]): Promise<string> {
  const ends = (await Promise.all(sessions.map((session) => bed.eventsOf('call_ended', session)))).flat();
  const refused = ends.filter(({ is_error, result }) => is_error && result.detail?.code !== 'child_failed');
  return refused.length === 0 ? 'ok' : `${refused.length} ${refused[0]?.result.detail?.code}`;
}

/** The code of the first call that did not go well, or `ok`. */
async function firstRefusal(bed: CrewBed): Promise<string> {
  const refused = (await bed.eventsOf('call_ended')).find(({ is_error }) => is_error);
  return refused ? String(refused.result.detail?.code) : 'ok';
}

/** How many of these reminders find no room in a child, by the lengths of their texts. */
function leftOut(...lengths: readonly number[]): { readonly units: number; readonly left: number } {
  const reminders = lengths.map((length, i) => ({
    command_id: `r${i}`,
    body: 'x'.repeat(length),
    tags: [],
    preserve_on_compact: false,
    propagate: 'all',
    role_hint: 'system_reminder',
  }));
  const context = { session_id: 's1', reminders } as unknown as SessionState['context'];
  const handed = remindersForChild(context);
  return { units: handed.reminders.map((one) => JSON.stringify(one)).join('').length, left: handed.leftOut };
}

/** A start that the store has not answered so often is sent again so long after the last time. */
async function sentAgain(failures: number, waitedMs: number): Promise<string> {
  const bed = crewBed();
  bed.parts = { lead: [delegate(['mate', 'go']), say('ok')], mate: [say('done')] };
  let sent = 0;
  const send: typeof bed.bus.sender.send = async (...args) => {
    if (++sent <= failures) throw new Error('no answer');
    return bed.bus.sender.send(...args);
  };
  await bed.crewHost({}, { sender: { send } });
  await bed.begin('lead');
  for (let n = 1; n < failures; n++) {
    await bed.time.advance(Math.min(BOUNDS.crewResendMs * 2 ** (n - 1), BOUNDS.crewResendMaxMs));
  }
  if (sent !== failures) return `sent ${sent} times`;
  await bed.time.advance(waitedMs);
  return sent > failures ? 'sent again' : 'waits';
}

/** The rows for bounds of crews: children, messages and handoffs. */
export const OF_CREWS: BoundRows = {
  childrenDefault: most('1 too_many_children', async (size) => {
    const bed = crewBed();
    const slow = [say('done', { delayMs: 60_000 })];
    bed.parts = { lead: [delegate(...list(size, (i) => ['mate', `${i}`] as const)), say('ok')], mate: slow };
    await bed.crewHost();
    await bed.begin('lead');
    return refusals(bed, ['s1']);
  }),
  depthDefault: most('1 too_deep', async (size) => {
    const bed = crewBed();
    // Each session receives the number of levels that it must create below it.
    bed.parts = {
      lead: (below) => (below === '0' ? [say('done')] : [delegate(['lead', `${Number(below) - 1}`]), say('ok')]),
    };
    await bed.crewHost();
    await bed.begin('lead', { prompt: `${size}` });
    const line = ['s1'];
    for (let [child] = await bed.childrenOf(); child !== undefined; [child] = await bed.childrenOf(child))
      line.push(child);
    return refusals(bed, line);
  }),
  hopsMax: most('rejected too_many_hops', async (hops) => {
    const bed = testBed();
    bed.models.answers = [say('busy', { delayMs: 60_000 })];
    await bed.host();
    await bed.start();
    const id = await bed.send('message', { from: 's2', hops, body: 'and you?' });
    const [told] = bed.told(id);
    return told === 'accepted' ? 'ok' : String(told);
  }),
  restartsMax: most('1 invalid_call_arguments', async (size) => {
    const bed = crewBed();
    bed.parts = {
      lead: [delegate(['mate', 'go', { restart: 'on_failure', max_restarts: size }]), say('ok')],
      mate: [{ fail: { code: 'model_failed', message: 'broken' } }],
    };
    await bed.crewHost();
    await bed.begin('lead');
    const begun = (await bed.childrenOf()).length;
    const refused = await refusals(bed, ['s1']);
    return refused === 'ok' && begun !== size + 1 ? `begun ${begun} times` : refused;
  }),
  crewMax: most('invalid_field personas', (size) => {
    const parsed = parseBody('start', { prompt: 'a', personas: list(size, (i) => ({ name: `p${i}` })) });
    return parsed.ok ? 'ok' : `${parsed.problem.code} ${parsed.problem.field}`;
  }),
  // Each unit of a text counts for three bytes, so that what counts for the bound itself counts for more.
  inheritedRemindersMaxBytes: from('ok', '1 left out', (size) => {
    const frame = leftOut(0).units;
    const half = Math.floor(size / 6);
    const { left } = leftOut(half - frame, Math.ceil(size / 3) - half - frame);
    return left === 0 ? 'ok' : `${left} left out`;
  }),
  // A character counts for four.
  childAnswerMaxBytes: most('cut', async (size) => {
    const bed = crewBed();
    const answer = 'x'.repeat(Math.ceil(size / 4));
    bed.parts = { lead: [delegate(['mate', 'go']), say('ok')], mate: [say(answer)] };
    await bed.crewHost();
    await bed.begin('lead');
    const [end] = await bed.eventsOf('call_ended');
    const said = textOf({ role: 'user', content: end?.result.content ?? [] } as Parameters<typeof textOf>[0]);
    return said === answer ? 'ok' : said.endsWith(' in the journal of the session]') ? 'cut' : said.slice(0, 80);
  }),
  crewResendMs: from('waits', 'sent again', (ms) => sentAgain(1, ms)),
  crewResendMaxMs: from('waits', 'sent again', (ms) => sentAgain(10, ms)),
  handoffsMax: most('too_many_handoffs', async (size) => {
    const bed = crewBed();
    const to = (name: string) => (i: number) => ask(call(`h${i}`, 'handoff', { to: name, brief: 'go on' }));
    bed.personas = { lead: { handoffs: ['mate'] }, mate: { handoffs: ['lead'] } };
    // The two personas hand off in turn; the persona that has the session after the last handoff answers.
    bed.parts = {
      lead: [...list(Math.ceil(size / 2), to('mate')), say('ok')],
      mate: [...list(Math.floor(size / 2), to('lead')), say('ok')],
    };
    await bed.crewHost();
    await bed.begin('lead');
    return firstRefusal(bed);
  }),
  briefMaxChars: most('invalid_call_arguments', async (size) => {
    const bed = crewBed();
    bed.personas = { lead: { handoffs: ['mate'] } };
    bed.parts = {
      lead: [ask(call('h1', 'handoff', { to: 'mate', brief: 'x'.repeat(size) })), say('ok')],
      mate: [say('ok')],
    };
    await bed.crewHost();
    await bed.begin('lead');
    return firstRefusal(bed);
  }),
};
