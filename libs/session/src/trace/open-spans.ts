/** Open spans: spans that have a start and no end yet, as the fold of a journal holds them. */
import type { EndedSpan, SpanAttributes, SpanMoment, TraceContext } from '@coxswain/protocol';
import { attributes } from './gen-ai-attributes.ts';

/** Maximum number of span events that a span keeps; a session may pass thousands of seams. */
export const MOMENTS_MAX = 128;
/** Maximum number of links of a span. */
export const LINKS_MAX = 128;

/** A span without an end. */
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

  /** Adds attributes, without those that are undefined or null. */
  with(more: Parameters<typeof attributes>[0]): this {
    this.#attributes = { ...this.#attributes, ...attributes(more) };
    return this;
  }

  /** Adds a span event. Beyond {@link MOMENTS_MAX}, only counts it. */
  moment(name: string, atMs: number, more: Parameters<typeof attributes>[0] = {}): void {
    if (this.#moments.length < MOMENTS_MAX) this.#moments.push({ name, atMs, attributes: attributes(more) });
    else this.#droppedMoments++;
  }

  /** Links the span to the sender's span of a command that affected it. Beyond {@link LINKS_MAX}, only counts links. */
  link(context: TraceContext): void {
    if (this.#links.length < LINKS_MAX) this.#links.push(context);
    else this.#droppedLinks++;
  }

  /** The span with its end time, and with the numbers of omitted events and links. */
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
