/** Elements as text, for tests that ask what a browser would be given. No browser is needed for it. */
import type { ComponentChildren, VNode } from 'preact';

/** `<p>text</p>`, with properties that are texts. Components are called. */
export function shownMarkup(children: ComponentChildren): string {
  if (children === null || children === undefined || typeof children === 'boolean') return '';
  if (Array.isArray(children)) return children.map(shownMarkup).join('');
  if (typeof children !== 'object') return `"${children}"`;
  const { type, props } = children as VNode<Record<string, unknown>>;
  if (typeof type === 'function')
    return shownMarkup((type as (props: unknown) => ComponentChildren)({ ...props }) as ComponentChildren);
  const { children: within, ...attributes } = props;
  const written = Object.entries(attributes)
    .filter(([, value]) => value !== undefined && value !== false)
    .map(([name, value]) => ` ${name}=${String(value)}`)
    .join('');
  return `<${type}${written}>${shownMarkup(within as ComponentChildren)}</${type}>`;
}
