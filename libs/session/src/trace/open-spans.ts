/** Spans that have begun and not ended yet, as the fold of a journal holds them. */
import type { EndedSpan, SpanAttributes, SpanMoment, TraceContext } from '@coxswain/protocol';
import { attributes } from './gen-ai-attributes.ts';

/** How much of what happened in one span is kept; a session may go through thousands of seams. */
export const MOMENTS_MAX = 128;
/** Commands that one span is linked to at most. */
export const LINKS_MAX = 128;

/** A span that has begun. */
export class OpenSpan {
  readonly context: TraceContext;
  readonly parent: TraceContext | null;
  readonly kind: EndedSpan['kind'];
  readonly #links: TraceContext[];
  name: string;
  startMs: number;
  #attributes: SpanAttributes = {};
  readonly #moments: SpanMoment[] = [];
  #droppedMoments = 0;
  #droppedLinks = 0;

  constructor(
    place: {
      readonly context: TraceContext;
      readonly parent: TraceContext | null;
      readonly links?: readonly TraceContext[];
    },
    name: string,
    startMs: number,
    kind: EndedSpan['kind'] = 'internal',
  ) {
    this.context = place.context;
    this.parent = place.parent;
    this.#links = [...(place.links ?? [])];
    this.name = name;
    this.startMs = startMs;
    this.kind = kind;
  }

  /** Adds attributes; those that are undefined or null are left out. */
  with(more: Parameters<typeof attributes>[0]): this {
    this.#attributes = { ...this.#attributes, ...attributes(more) };
    return this;
  }

  /** Notes that something has happened. */
  moment(name: string, atMs: number, more: Parameters<typeof attributes>[0] = {}): void {
    if (this.#moments.length < MOMENTS_MAX) this.#moments.push({ name, atMs, attributes: attributes(more) });
    else this.#droppedMoments++;
  }

  /** Links the span to one of another trace: that of a command which has affected it. */
  link(context: TraceContext): void {
    if (this.#links.length < LINKS_MAX) this.#links.push(context);
    else this.#droppedLinks++;
  }

  /** As it is at its end. */
  ended(endMs: number, error: EndedSpan['error'] = null): EndedSpan {
    const { context, parent, name, kind, startMs } = this;
    const dropped = {
      ...(this.#droppedMoments > 0 ? { 'coxswain.moments_left_out': this.#droppedMoments } : {}),
      ...(this.#droppedLinks > 0 ? { 'coxswain.links_left_out': this.#droppedLinks } : {}),
    };
    return {
      context,
      parent,
      name,
      kind,
      startMs: Math.min(startMs, endMs),
      endMs,
      error,
      attributes: { ...this.#attributes, ...dropped },
      moments: [...this.#moments],
      links: [...this.#links],
    };
  }
}
