/** Host notices: inbox feedback as a model is shown it. A provider knows only users and assistants, so the text itself has to say that no person speaks. */

const TAG = 'host-notice';
/** The first line of every notice. */
export const NOTICE_HEAD = 'Not from a person. The environment of this session reports:';

/**
 * The text of one notice, as a record has it. What a server or a tool wrote cannot end it and go on in a person's voice. Models
 * are shown it with the marks of `prompt-marks.ts`.
 */
export function hostNotice(source: string, body: string): string {
  const inside = body.replaceAll(new RegExp(`<(\\s*/?\\s*${TAG})`, 'gi'), '&lt;$1');
  return `<${TAG} from="${source.replaceAll(/[<>"&]/g, '_')}">\n${NOTICE_HEAD}\n${inside}\n</${TAG}>`;
}

/** What a notice says and who gives it, or null for any other text. */
export function readHostNotice(text: string): { readonly source: string; readonly body: string } | null {
  const found = new RegExp(`^<${TAG} from="([^"]*)">\\n[^\\n]*\\n([\\s\\S]*)\\n</${TAG}>$`).exec(text);
  return found ? { source: found[1] as string, body: found[2] as string } : null;
}
