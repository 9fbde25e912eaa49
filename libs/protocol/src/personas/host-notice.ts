/**
 * Host notices: inbox feedback in the form for models. Providers know only users and assistants, so the text itself
 * must say that it is not from a person.
 */

const TAG = 'host-notice';
/** The first line of every notice. */
export const NOTICE_HEAD = 'Not from a person. The environment of this session reports:';

/**
 * The recorded text of one notice. Text of a server or a tool cannot close it and continue in a person's voice. Prompts
 * contain it with the marks of `prompt-marks.ts`.
 */
export function hostNotice(source: string, body: string): string {
  const inside = body.replaceAll(new RegExp(`<(\\s*/?\\s*${TAG})`, 'gi'), '&lt;$1');
  return `<${TAG} from="${source.replaceAll(/[<>"&]/g, '_')}">\n${NOTICE_HEAD}\n${inside}\n</${TAG}>`;
}

/** The source and the body of a notice, or null for any other text. */
export function readHostNotice(text: string): { readonly source: string; readonly body: string } | null {
  const found = new RegExp(`^<${TAG} from="([^"]*)">\\n[^\\n]*\\n([\\s\\S]*)\\n</${TAG}>$`).exec(text);
  return found ? { source: found[1] as string, body: found[2] as string } : null;
}
