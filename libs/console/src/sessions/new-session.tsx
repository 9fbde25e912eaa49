/** Starts a session. */
import type { VNode } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import type { ListedSession, SessionsClient } from '../browser-client.ts';
import { OutcomeLine, useOutcome } from '../page/outcome.tsx';
import { SameCommand } from '../page/same-command.ts';

/** The form. @param onStarted is told the id of the session that was started */
export function NewSession({
  client,
  sessions,
  onStarted,
}: {
  readonly client: SessionsClient;
  readonly sessions: readonly ListedSession[];
  readonly onStarted: (sessionId: string) => void;
}): VNode {
  const [prompt, setPrompt] = useState('');
  const [persona, setPersona] = useState('');
  const [model, setModel] = useState('');
  const [root, setRoot] = useState('');
  const [busy, setBusy] = useState(false);
  const { outcome, ask } = useOutcome();
  const [same] = useState(() => new SameCommand());
  const id = useId();
  const first = useRef<HTMLTextAreaElement>(null);
  useEffect(() => first.current?.focus(), []);
  const start = async () => {
    if (prompt.trim() === '' || busy) return;
    setBusy(true);
    await ask('started', async () => {
      const body = {
        prompt,
        ...(persona.trim() === '' ? {} : { persona: persona.trim() }),
        ...(model.trim() === '' ? {} : { model: model.trim() }),
        ...(root.trim() === '' ? {} : { root: root.trim() }),
      };
      const { session } = await same.send(JSON.stringify(body), (ids) =>
        client.startSession(body, { ...ids, wait: 'accepted' }),
      );
      onStarted(session.id);
    });
    setBusy(false);
  };
  return (
    <form
      class="new-session"
      aria-label="Start a session"
      onSubmit={(event) => {
        event.preventDefault();
        void start();
      }}
    >
      <h1>Start a session</h1>
      <label for={`${id}-prompt`}>Prompt</label>
      <textarea
        id={`${id}-prompt`}
        rows={6}
        value={prompt}
        required
        ref={first}
        onInput={({ currentTarget }) => setPrompt(currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return;
          event.preventDefault();
          void start();
        }}
      />
      <div class="field-row">
        <Field
          id={`${id}-persona`}
          name="Persona"
          hint="by name"
          value={persona}
          onInput={setPersona}
          known={known(sessions, 'persona')}
        />
        <Field
          id={`${id}-model`}
          name="Model"
          hint="provider/name"
          value={model}
          onInput={setModel}
          known={known(sessions, 'model')}
        />
      </div>
      <Field id={`${id}-root`} name="Folder" hint="on the host, absolute" value={root} onInput={setRoot} known={[]} />
      <div class="buttons">
        <button type="submit" class="primary" disabled={busy || prompt.trim() === ''}>
          Start
        </button>
        <span class="faint">Ctrl Enter</span>
      </div>
      <OutcomeLine outcome={outcome} />
    </form>
  );
}

function Field({
  id,
  name,
  hint,
  value,
  onInput,
  known,
}: {
  readonly id: string;
  readonly name: string;
  readonly hint: string;
  readonly value: string;
  readonly onInput: (value: string) => void;
  readonly known: readonly string[];
}) {
  return (
    <div class="field">
      <label for={id}>
        {name} <span class="faint">{hint}</span>
      </label>
      <input
        id={id}
        type="text"
        value={value}
        list={`${id}-known`}
        autocomplete="off"
        spellcheck={false}
        onInput={({ currentTarget }) => onInput(currentTarget.value)}
      />
      <datalist id={`${id}-known`}>
        {known.map((one) => (
          <option key={one} value={one} />
        ))}
      </datalist>
    </div>
  );
}

/** What other sessions have, each once: to choose from. */
function known(sessions: readonly ListedSession[], what: 'persona' | 'model'): string[] {
  return [...new Set(sessions.flatMap(({ details }) => details?.[what] ?? []))].sort();
}
