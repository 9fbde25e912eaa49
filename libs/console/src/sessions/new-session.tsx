/** The form that starts a session. */
import type { VNode } from 'preact';
import { useEffect, useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { BodyInput, SessionsClient, WireListedSession } from '../browser-client.ts';
import { OutcomeLine, useOutcome } from '../page/outcome.tsx';
import { SameCommand } from '../page/same-command.ts';
import {
  demoFields,
  fieldOf,
  fieldProblemText,
  NOTHING_OFFERED,
  type Offered,
  offeredModels,
  offeredPersonas,
  personaNote,
  type StartField,
  type StartFields,
  type StartProblems,
  startBody,
  startProblems,
} from './start-form.ts';

const EMPTY: StartFields = { prompt: '', persona: '', model: '', root: '' };
/** The order in which invalid fields are focused. */
const FIELDS: readonly StartField[] = ['prompt', 'persona', 'model', 'root'];

/** The form. @param onStarted Called with the id of the started session. */
export function NewSession({
  client,
  sessions,
  onStarted,
}: {
  readonly client: SessionsClient;
  readonly sessions: readonly WireListedSession[];
  readonly onStarted: (sessionId: string) => void;
}): VNode {
  const [fields, setFields] = useState(EMPTY);
  const [problems, setProblems] = useState<StartProblems>({});
  const [offered, setOffered] = useState<Offered>(NOTHING_OFFERED);
  const [busy, setBusy] = useState(false);
  const { outcome, runAction } = useOutcome();
  const [same] = useState(() => new SameCommand());
  const id = useId();
  const form = useRef<HTMLFormElement>(null);
  // Before the next key press: `n` followed at once by a letter types that letter.
  useLayoutEffect(() => goTo(form.current, 'prompt'), []);
  useEffect(() => {
    let left = false;
    client.startOptions().then(
      (options) => {
        if (left) return;
        setOffered((before) => ({ ...before, options }));
        const { folder } = options;
        // Text that was typed meanwhile stays.
        if (folder !== null) setFields((before) => (before.root === '' ? { ...before, root: folder } : before));
      },
      // The form works without suggestions: a gateway of an earlier release has none.
      () => undefined,
    );
    return () => {
      left = true;
    };
  }, [client]);
  const change = (name: StartField) => (value: string) => {
    setFields((before) => ({ ...before, [name]: value }));
    setProblems(({ [name]: _corrected, ...others }) => others);
  };
  /** Shows the problems at their fields; the line below the form names the first field. */
  const refuse = (found: StartProblems) => {
    setProblems(found);
    const first = FIELDS.find((name) => found[name] !== undefined);
    if (first === undefined) return;
    goTo(form.current, first);
    throw new Error(`correct the field ${NAMES[first]}`);
  };
  const start = async () => {
    if (busy) return;
    setBusy(true);
    await runAction('started', async () => {
      refuse(startProblems(fields, offered));
      const body = startBody(fields, offered);
      try {
        // The persona of a demo is in its wire form.
        const session = await same.send(JSON.stringify(body), async ({ id, sessionId }) => {
          const started = client.session(sessionId);
          await started.wire.send('start', body as BodyInput<'start'>, { id, wait: 'accepted' });
          return started;
        });
        onStarted(session.id);
      } catch (error) {
        const field = fieldOf(error);
        if (field === null) throw error;
        refuse({ [field]: `${NAMES[field]}: ${fieldProblemText(error)}` });
      }
    });
    setBusy(false);
  };
  const fillInDemo = () =>
    runAction('the demo is filled in: press Start', async () => {
      const demo = await client.prepareDemo();
      setOffered((before) => ({ ...before, demo }));
      setFields(demoFields(demo));
      setProblems({});
      goTo(form.current, 'prompt');
    });
  return (
    <form
      class="new-session"
      aria-label="Start a session"
      noValidate
      ref={form}
      onSubmit={(event) => {
        event.preventDefault();
        void start();
      }}
      onKeyDown={(event) => {
        if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return;
        event.preventDefault();
        void start();
      }}
    >
      <div class="form-head">
        <h1>Start a session</h1>
        {offered.options.hasDemo && (
          <button type="button" class="small" onClick={() => void fillInDemo()}>
            Fill in the demo
          </button>
        )}
      </div>
      <div class="field">
        <label for={`${id}-prompt`}>{NAMES.prompt}</label>
        <textarea
          id={`${id}-prompt`}
          name="prompt"
          rows={6}
          value={fields.prompt}
          {...described(`${id}-prompt`, problems.prompt)}
          onInput={({ currentTarget }) => change('prompt')(currentTarget.value)}
        />
        <FieldProblem id={`${id}-prompt`} problem={problems.prompt} />
      </div>
      <div class="field-row">
        <Field
          {...{ id, name: 'persona', hint: 'by name', value: fields.persona, onInput: change('persona') }}
          problem={problems.persona}
          offers={offeredPersonas(offered, sessions)}
          note={personaNote(fields.persona, offered)}
        />
        <Field
          {...{ id, name: 'model', hint: 'provider/name', value: fields.model, onInput: change('model') }}
          problem={problems.model}
          offers={offeredModels(sessions)}
          note={null}
        />
      </div>
      <Field
        {...{ id, name: 'root', hint: 'on the host, absolute', value: fields.root, onInput: change('root') }}
        problem={problems.root}
        offers={[]}
        note={null}
      />
      <div class="buttons">
        <button type="submit" class="primary" disabled={busy}>
          Start
        </button>
        <span class="faint">Ctrl Enter</span>
      </div>
      <OutcomeLine outcome={outcome} />
    </form>
  );
}

const NAMES: Readonly<Record<StartField, string>> = {
  prompt: 'Prompt',
  persona: 'Persona',
  model: 'Model',
  root: 'Folder',
};

/** Links a field to its problem, for screen readers. */
function described(id: string, problem: string | undefined) {
  return { 'aria-invalid': problem !== undefined, 'aria-describedby': `${id}-problem` };
}

function FieldProblem({ id, problem }: { readonly id: string; readonly problem: string | undefined }) {
  return (
    <p class="field-problem" id={`${id}-problem`} role="alert">
      {problem}
    </p>
  );
}

function Field({
  id: form,
  name,
  hint,
  value,
  onInput,
  problem,
  offers,
  note,
}: {
  readonly id: string;
  readonly name: StartField;
  readonly hint: string;
  readonly value: string;
  readonly onInput: (value: string) => void;
  readonly problem: string | undefined;
  /** Values to choose from. */
  readonly offers: readonly string[];
  readonly note: string | null;
}) {
  const id = `${form}-${name}`;
  return (
    <div class="field">
      <label for={id}>
        {NAMES[name]} <span class="faint">{hint}</span>
      </label>
      <input
        id={id}
        name={name}
        type="text"
        value={value}
        list={`${id}-known`}
        autocomplete="off"
        spellcheck={false}
        {...described(id, problem)}
        onInput={({ currentTarget }) => onInput(currentTarget.value)}
      />
      <datalist id={`${id}-known`}>
        {offers.map((one) => (
          <option key={one} value={one} />
        ))}
      </datalist>
      {(offers.length > 0 || note !== null) && (
        <p class="offers">
          {offers.map((one) => (
            <button key={one} type="button" class="small" aria-pressed={one === value} onClick={() => onInput(one)}>
              {one}
            </button>
          ))}
          {note !== null && <span class="faint">{note}</span>}
        </p>
      )}
      <FieldProblem id={id} problem={problem} />
    </div>
  );
}

function goTo(form: HTMLFormElement | null, field: StartField): void {
  form?.querySelector<HTMLElement>(`[name=${field}]`)?.focus();
}
