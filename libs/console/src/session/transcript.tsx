/** The messages and calls of a session, in order. */
import type { VNode } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { Markdown } from '../markdown/markdown.tsx';
import { hashOf, sessionPlace } from '../page/place.ts';
import { clockText, costText, countText } from '../page/wording.ts';
import type { AnswerEntry, EndEntry, Entry, InjectionEntry } from '../view/entries.ts';
import { CallCard, type CallControls } from './call-card.tsx';

/** The number of entries shown at first; a button shows earlier ones. */
const SHOWN = 300;
/** The distance from the end that counts as the end, in pixels. */
const NEAR_PX = 48;

/** The transcript. It follows new entries while its end is in view. */
export function Transcript({
  entries,
  isLive,
  isAnswering,
  controls,
}: {
  readonly entries: readonly Entry[];
  readonly isLive: boolean;
  /** The model request is sent, and its answer is not complete. */
  readonly isAnswering: boolean;
  readonly controls: CallControls;
}): VNode {
  const [shown, setShown] = useState(SHOWN);
  const scrolled = useRef<HTMLDivElement>(null);
  const follows = useRef(true);
  useLayoutEffect(() => {
    const box = scrolled.current;
    if (box && follows.current) box.scrollTop = box.scrollHeight;
  }, [entries]);
  const hidden = Math.max(0, entries.length - shown);
  return (
    <div
      class="transcript"
      ref={scrolled}
      role="log"
      aria-label="Transcript"
      aria-live={isLive ? 'polite' : 'off'}
      aria-relevant="additions"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: scrollable elements must be reachable by keyboard
      tabIndex={0}
      onScroll={({ currentTarget: box }) => {
        follows.current = box.scrollHeight - box.scrollTop - box.clientHeight < NEAR_PX;
      }}
    >
      {hidden > 0 && (
        <button type="button" class="quiet" onClick={() => setShown(shown + 4 * SHOWN)}>
          Show earlier entries ({countText(hidden)})
        </button>
      )}
      {entries.length === 0 && <p class="empty">No messages yet.</p>}
      {entries.slice(hidden).map((entry) => (
        <EntryView key={entry.key} entry={entry} controls={controls} />
      ))}
      {isAnswering && !isStreaming(entries.at(-1)) && <p class="entry notice plain">The model is answering …</p>}
    </div>
  );
}

function isStreaming(entry: Entry | undefined): boolean {
  return entry?.kind === 'answer' && entry.live;
}

function EntryView({ entry, controls }: { readonly entry: Entry; readonly controls: CallControls }): VNode {
  switch (entry.kind) {
    case 'prompt':
      return (
        <article class="entry prompt" data-n={entry.n}>
          <EntryHead who={entry.actor ?? 'prompt'} at={entry.at} n={entry.n} />
          <Markdown text={entry.text} />
        </article>
      );
    case 'run':
      return (
        <p class="entry divider">
          <span class="cut">
            run {entry.run}
            {[entry.persona, entry.model].filter(Boolean).map((word) => ` · ${word}`)}
          </span>
        </p>
      );
    case 'answer':
      return <Answer answer={entry} />;
    case 'call':
      return <CallCard call={entry} controls={controls} />;
    case 'injection':
      return <Injection injection={entry} />;
    case 'notice':
      return (
        <p class={`entry notice ${entry.tone}`} data-n={entry.n}>
          <span>{entry.text}</span>
          {entry.session !== undefined && <a href={hashOf(sessionPlace(entry.session))}>open</a>}
          <time dateTime={entry.at}>{clockText(entry.at)}</time>
        </p>
      );
    case 'end':
      return <End end={entry} />;
  }
}

function EntryHead({ who, at, n }: { readonly who: string; readonly at: string; readonly n: number }) {
  return (
    <header class="entry-head">
      <strong>{who}</strong>
      <span class="faint">
        <time dateTime={at}>{clockText(at)}</time> · record {n}
      </span>
    </header>
  );
}

function Answer({ answer }: { readonly answer: AnswerEntry }) {
  return (
    <article class={answer.live ? 'entry answer live' : 'entry answer'} data-n={answer.n} aria-busy={answer.live}>
      <EntryHead who="model" at={answer.at} n={answer.n} />
      {answer.reasoning !== '' && (
        <details class="reasoning" open={answer.live && answer.text === ''}>
          <summary>reasoning</summary>
          <Markdown text={answer.reasoning} />
        </details>
      )}
      {answer.text !== '' && <Markdown text={answer.text} />}
      {answer.partial && <p class="faint">interrupted here</p>}
      {answer.live && (
        <span class="caret" role="img" aria-label="continues below">
          ▍
        </span>
      )}
    </article>
  );
}

const ORIGINS: Readonly<Record<InjectionEntry['origin'], string>> = {
  steer: 'steer',
  remind: 'reminder',
  followup: 'follow-up',
  feedback: 'feedback',
  direct: 'message',
};

function Injection({ injection }: { readonly injection: InjectionEntry }) {
  const where = injection.seam === 'hook' ? 'at once' : `delivered at ${injection.seam}`;
  return (
    <article class={`entry injection ${injection.origin}`} data-n={injection.n} data-command={injection.commandId}>
      <header class="entry-head">
        <strong>
          {ORIGINS[injection.origin]}
          {injection.actor !== null && ` · ${injection.actor}`}
        </strong>
        <span class="faint">
          {where}
          {injection.turn !== null && `, turn ${injection.turn}`} · record {injection.n}
        </span>
      </header>
      <Markdown text={injection.text} />
    </article>
  );
}

function End({ end }: { readonly end: EndEntry }) {
  const { inputTokens, outputTokens } = end.usage;
  return (
    <p class={`entry end ${end.stopReason === 'error' ? 'error' : 'plain'}`} data-n={end.n}>
      <span>
        run {end.run} ended: <strong>{end.stopReason}</strong>
        {end.problem !== null && ` · ${end.problem}`}
      </span>
      <span class="faint">
        {end.turns} {end.turns === 1 ? 'turn' : 'turns'} · {countText(inputTokens)} in, {countText(outputTokens)} out ·{' '}
        {costText(end.costUsd)}
      </span>
    </p>
  );
}
