/** Faults of replays, forks and imports: what is recomputed, what is copied, and what must not be. */
import type { PlantedFault } from './planted-faults.ts';

/** See the top of the file. */
export const FAULTS_OF_COPIES: readonly PlantedFault[] = [
  // ---- replay ----
  {
    name: 'a replay does not look at the bytes',
    room: 'session',
    file: 'replay-journal.ts',
    find: 'if (Buffer.compare(sealed.bytes, bytes) !== 0) {',
    instead: 'if (sealed.bytes.length === 0) {',
  },
  {
    name: 'a replay trusts the chain that it is shown',
    room: 'session',
    file: 'replay-journal.ts',
    find: 'const record = buildRecord({ sessionId, n, attempt, prevHash: hash, at, cursor }, input, events, actor.state);',
    instead:
      'const record = buildRecord({ sessionId, n, attempt, prevHash: recorded.prev_hash, at, cursor }, input, events, actor.state);',
  },
  {
    name: 'a replay trusts the events that are recorded',
    room: 'session',
    file: 'replay-journal.ts',
    find: 'const record = buildRecord({ sessionId, n, attempt, prevHash: hash, at, cursor }, input, events, actor.state);',
    instead:
      'const record = buildRecord({ sessionId, n, attempt, prevHash: hash, at, cursor }, input, events.length < 0 ? events : recorded.events, actor.state);',
  },
  {
    name: 'a journal of another machine is replayed as if it were this one’s',
    room: 'session',
    file: 'replay-journal.ts',
    find: '  checkMachine(recorded, n);\n',
    instead: '',
  },
  // ---- what a fork copies ----
  {
    name: 'a fork keeps who waits for the receipts of its origin',
    room: 'session',
    file: 'copy-journal.ts',
    find: 'const { receipt_to: _, copied_from: __, ...own } = input;',
    instead: 'const { copied_from: __, ...own } = input;',
  },
  {
    name: 'each copied record of a fork has the place in the inbox of the command that asked for it',
    room: 'session',
    file: 'session-runner.ts',
    find: 'this.#step(now(), input, n === 1 ? cursor : undefined, at)',
    instead: 'this.#step(now(), input, cursor, at)',
  },
  {
    name: 'a fork does not keep the times of its origin',
    room: 'session',
    file: 'session-runner.ts',
    find: 'this.#step(now(), input, n === 1 ? cursor : undefined, at)',
    instead: 'this.#step(now(), input, n === 1 ? cursor : undefined)',
  },
  {
    name: 'a fork copies one record too many',
    room: 'session',
    file: 'copy-journal.ts',
    find: '    if (n === copy.n) return;\n  }',
    instead: '    if (n === copy.n + 1) return;\n  }',
  },
  {
    name: 'a change is made in every record of a fork',
    room: 'session',
    file: 'copy-journal.ts',
    find: 'const input = n === copy.n ? await changedInput',
    instead: 'const input = n > 1 ? await changedInput',
  },
  {
    name: 'a fork that goes on does not look whether its origin is still the same',
    room: 'session',
    file: 'copy-journal.ts',
    find: '  if (after > 0) await checkOrigin(ports.journal, origin, copy);\n',
    instead: '',
  },
  {
    name: 'a call that only the changed record begins is in doubt',
    room: 'session',
    file: 'copy-journal.ts',
    find: 'return unsent.length > 0 ? {',
    instead: 'return unsent.length < 0 ? {',
  },
  {
    name: 'a fork under the command id of its origin is begun',
    room: 'session',
    file: 'copy-journal.ts',
    find: "if (last.input.type === 'command' && last.input.command_id === command.command_id) {",
    instead: "if (last.input.type === 'command' && last.input.command_id === '') {",
  },
  {
    name: 'a fork takes commands before it is whole',
    room: 'session',
    file: 'session-runner.ts',
    find: 'if (session.copy) return this.#completeCopy(session);',
    instead: '',
  },
  {
    name: 'who was behind a veto is let pass unasked, where a fork has lifted it',
    room: 'session',
    file: 'change-record.ts',
    find: '} else if (answer.not_run && !hasEnded) {',
    instead: '} else if (answer.not_run && hasEnded) {',
  },
  {
    name: 'a changed verdict does not end the chain',
    room: 'session',
    file: 'change-record.ts',
    find: 'hasEnded ||= endsChain(answer.verdict) || ',
    instead: 'hasEnded ||= ',
  },
  {
    name: 'arguments of a changed verdict are not validated',
    room: 'session',
    file: 'change-record.ts',
    find: 'input: { ...rest, answers, ...argsProblem(answers, tool, transcript) }',
    instead: 'input: { ...rest, answers }',
  },
  // ---- how a fork goes on, in the machine ----
  {
    name: 'a fork does not say where it comes from',
    file: 'copied-session.ts',
    find: '  if (!copied_from) return [];\n',
    instead: '  if (copied_from || true) return [];\n',
  },
  {
    name: 'a call that was sent for the origin is the fork’s as well',
    file: 'copied-session.ts',
    find: '  return unsent?.includes(row.call_id) ? { ...rest, epoch } : rest;',
    instead: '  return { ...rest, epoch };',
  },
  {
    name: 'a call that was taken up for the origin is taken up for the fork',
    file: 'copied-session.ts',
    find: 'const { accepted: _, ...rest } = row;',
    instead: 'const { ...rest } = row;',
  },
  {
    name: 'the time between the record and its fork counts',
    file: 'copied-session.ts',
    find: 'watchClock(startClock(stopClock(count, context.at_ms), event.at_ms))',
    instead: 'watchClock(startClock(stopClock(count, event.at_ms), event.at_ms))',
  },
  {
    name: 'another model is resolved while the run goes on',
    file: 'copied-session.ts',
    find: '...(reprovisions ? { reprovisions } : {})',
    instead: '',
  },
  {
    name: 'a fork with another model has the hooks of today',
    file: 'copied-session.ts',
    find: ".filter(({ type }) => type !== 'hooks_changed')",
    instead: '',
  },
  {
    name: 'another model is asked at the address of the one before',
    file: 'copied-session.ts',
    find: "for (const key of ['provider', 'base_url'] as const) delete kept[key];",
    instead: '',
  },
  // ---- imports ----
  {
    name: 'an import has the places of another bus in its inbox',
    room: 'session',
    file: 'import-journal.ts',
    find: 'const { n, at, attempt, input, prev_hash } = await readRecord(bytes, exported);\n    const own = ofItself(input, n === 1 ? copy : undefined);\n    const { events } = actor.step(own, n, Date.parse(at));\n    const frame = { sessionId: ref.sessionId, n, attempt, prevHash: prevHash ?? prev_hash, at };',
    instead:
      'const { n, at, attempt, input, prev_hash, cursor } = await readRecord(bytes, exported);\n    const own = ofItself(input, n === 1 ? copy : undefined);\n    const { events } = actor.step(own, n, Date.parse(at));\n    const frame = { sessionId: ref.sessionId, n, attempt, prevHash: prevHash ?? prev_hash, at, cursor };',
  },
  {
    name: 'an import does not look at the chain',
    room: 'session',
    file: 'import-journal.ts',
    find: '  if (record.prev_hash !== replay.hash)\n    throw',
    instead: '  if (record.prev_hash === "")\n    throw',
  },
  {
    name: 'an import is written over a session that is there',
    room: 'session',
    file: 'import-journal.ts',
    find: 'if (Buffer.compare(stands.value.bytes, sealed.bytes) !== 0) throw taken(ref);',
    instead: '',
  },
  {
    name: 'an import that was broken off takes commands',
    room: 'session',
    file: 'copy-state.ts',
    find: "return copy?.how === 'import' && n < copy.n;",
    instead: 'return false;',
  },
];
