/** The keys of the view: how they change its state, and their effects. */
import { printableJson } from '@coxswain/client';
import type { JsonObject } from '@coxswain/protocol';
import { type Composer, composerKey, type Key, remember, textOf, withText } from './composer.ts';
import { readTyped, TYPED_HELP, type TypedCommand } from './typed-command.ts';
import { isSameCall, unchanged, type ViewState, type ViewStep, withItem } from './view-state.ts';

/** Processes one key. */
export function takeKey(state: ViewState, text: string | undefined, key: Key): ViewStep {
  const isCtrlC = key.ctrl === true && key.name === 'c';
  // A paste is a text and no answer.
  if (state.isLeaving && key.name === 'paste-start') return takeKey({ ...state, isLeaving: false }, text, key);
  if (state.isLeaving) return answerLeaving(state, isCtrlC ? 'd' : text);
  if (isCtrlC) return state.stopReason === null ? unchanged({ ...state, isLeaving: true }) : leave(state);
  if (key.ctrl && !state.composer.isPasting) {
    if (key.name === 'd' && textOf(state.composer) === '') return leave(state);
    if (key.name === 'o') return unfold(state);
    if (key.name === 'z') return { state, finished: [], effects: [{ do: 'pause_process' }] };
    if (key.name === 'l') return { state, finished: [], effects: [{ do: 'redraw' }] };
  }
  // In arguments, Tab is a blank of the JSON text.
  if (key.name === 'tab' && !state.composer.isPasting && state.composer.kind !== 'args')
    return unchanged({ ...state, approvals: rotated(state.approvals) });
  const result = composerKey(state.composer, text, key);
  if (result.type === 'none') return unchanged(state);
  if (result.type === 'edited') return unchanged({ ...state, composer: result.composer });
  return submit(state, result.composer, result.text);
}

/** The key after Ctrl-C: `d` or another Ctrl-C detaches, `c` cancels the run, any other key continues. */
function answerLeaving(state: ViewState, text: string | undefined): ViewStep {
  const stayed = { ...state, isLeaving: false };
  if (text === 'd') return leave(stayed);
  if (text !== 'c') return unchanged(stayed);
  return send(stayed, { do: 'cancel', reason: 'cancelled at the keyboard' });
}

function submit(state: ViewState, composer: Composer, text: string): ViewStep {
  const { kind } = state.composer;
  if (kind === 'args') return submitArgs(state, composer, text);
  const meant = text.trim() === '' && kind === 'steer' ? (state.suggestion ?? '') : text;
  const command = readTyped(meant, kind, state.approvals.length > 0);
  const next = { ...state, composer: remember(composer, text) };
  switch (command.do) {
    case 'nothing':
      return unchanged(next);
    case 'detach':
      return leave(next);
    case 'help': {
      const { problem } = command;
      const item = { kind: 'notice', text: problem ?? TYPED_HELP, tone: problem === null ? 'dim' : 'yellow' } as const;
      return withItem(next, item);
    }
    case 'edit_args': {
      const [first] = state.approvals;
      if (first === undefined) return unchanged(next);
      return unchanged({
        ...next,
        composer: withText(next.composer, printableJson(first.args), 'args'),
        edited: first,
      });
    }
    default:
      return send(next, command);
  }
}

/** Approves the edited call with the new arguments if they are a JSON object. Otherwise the text stays. */
function submitArgs(state: ViewState, composer: Composer, text: string): ViewStep {
  const call = state.approvals.find((one) => state.edited !== null && isSameCall(one, state.edited));
  if (call === undefined)
    return withItem(state, { kind: 'notice', text: 'this call is already decided · Esc: discard', tone: 'yellow' });
  let args: unknown;
  try {
    args = JSON.parse(text);
  } catch (error) {
    return withItem(state, { kind: 'notice', text: `not valid JSON: ${(error as Error).message}`, tone: 'yellow' });
  }
  if (typeof args !== 'object' || args === null || Array.isArray(args))
    return withItem(state, { kind: 'notice', text: 'the arguments are a JSON object: {…}', tone: 'yellow' });
  const command = { do: 'decide', decision: 'allow', reason: undefined, args: args as JsonObject } as const;
  return send({ ...state, composer }, command, call);
}

/** @param call the call of a decision. */
function send(state: ViewState, command: TypedCommand, call = state.approvals[0]): ViewStep {
  const running = state.calls.at(-1)?.callId ?? null;
  const asked = command.do === 'decide' ? call : undefined;
  const effects = [{ do: 'send', command, asked, running } as const];
  if (asked === undefined) return { state, finished: [], effects };
  // A decision removes its call from the list at once, so that the next decision is about the next call.
  const approvals = state.approvals.filter((one) => one !== asked);
  return { state: { ...state, approvals, decided: [...state.decided, asked] }, finished: [], effects };
}

/**
 * Ctrl-O: shows calls that end later with their arguments and output, or folds them again. When it unfolds, it also
 * shows the newest call in full.
 */
function unfold(state: ViewState): ViewStep {
  const isUnfolded = !state.isUnfolded;
  const next = { ...state, isUnfolded };
  const [asked] = state.approvals;
  // A pending approval takes precedence: its arguments can be read in full, even if they were cut.
  if (asked !== undefined && isUnfolded)
    return withItem(next, { kind: 'approval', event: asked, child: null, unfolded: true });
  const [newest] = state.ended;
  if (newest === undefined || !isUnfolded)
    return withItem(next, { kind: 'notice', text: isUnfolded ? UNFOLDED : FOLDED, tone: 'dim' });
  return withItem(next, { kind: 'call', call: newest, unfolded: true });
}

const UNFOLDED = '  (calls are shown with their arguments and output from here on)';
const FOLDED = '  (calls are folded again)';

function leave(state: ViewState): ViewStep {
  return { state, finished: [], effects: [{ do: 'leave' }] };
}

function rotated<T>(list: readonly T[]): readonly T[] {
  const [first, ...others] = list;
  return first === undefined ? list : [...others, first];
}
