/** Arguments as they are shown to people and told to others: without what looks like a secret, and short. */
import type { Json } from './json.ts';

const SECRET_KEY = /pass(word|wd|phrase)?$|secret|token|api[_-]?key|private[_-]?key|credential|authorization|cookie/i;
const SECRET_TEXT =
  /(Bearer\s+)[\w.~+/-]{8,}=*|(\b[a-z][a-z0-9+.-]{0,20}:\/\/[^/\s:@]*:)[^/\s@]+(?=@)|\b(sk|pk|ghp|gho|ghs|xox[abp]|AKIA|whsec)[-_]?[A-Za-z0-9_-]{12,}|-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*/g;
const REDACTED = '[redacted]';

const TEXT_MAX_CHARS = 256;
/** So much of a text is looked at: what is shown, and far enough behind it that no secret is cut in two before it is known. */
const READ_MAX_CHARS = 1_024;
const LIST_MAX = 16;
const KEYS_MAX = 32;
const DEPTH_MAX = 4;

/**
 * A copy of arguments for other eyes: values whose name or look is a secret's are replaced, long texts and lists cut, deep
 * members left out. At most about 16 KiB as JSON, whatever came in. It is a courtesy to those who read lists and notices,
 * and no vault: a secret under an innocent name stays.
 */
export function redactArgs(value: Json): Json {
  let budget = 12_000;
  const text = (raw: string): string => {
    const clean = raw.slice(0, READ_MAX_CHARS).replace(SECRET_TEXT, (_, ...groups) => {
      const [bearer, url] = groups as (string | undefined)[];
      return `${bearer ?? url ?? ''}${REDACTED}`;
    });
    const max = Math.max(0, Math.min(TEXT_MAX_CHARS, budget));
    const short = raw.length > max && clean.length > max ? `${wholeCharacters(clean, max)}…` : clean;
    budget -= short.length;
    return short;
  };
  const copy = (one: Json, depth: number): Json => {
    if (typeof one === 'string') return text(one);
    if (typeof one !== 'object' || one === null) return one;
    if (depth >= DEPTH_MAX || budget <= 0) return '…';
    if (Array.isArray(one)) {
      const list = one.slice(0, LIST_MAX).map((item) => copy(item, depth + 1));
      return one.length > LIST_MAX ? [...list, `… ${one.length - LIST_MAX} more`] : list;
    }
    const entries = Object.entries(one);
    const shown = entries.slice(0, KEYS_MAX).map(([key, item]): [string, Json] => {
      budget -= key.length;
      return [key.slice(0, 128), SECRET_KEY.test(key) && item !== null ? REDACTED : copy(item, depth + 1)];
    });
    const rest = entries.length - KEYS_MAX;
    return Object.fromEntries(rest > 0 ? [...shown, ['…', `${rest} more`]] : shown);
  };
  return copy(value, 0);
}

// A cut must not leave half of a surrogate pair: it is no text that could be written.
function wholeCharacters(text: string, max: number): string {
  const cut = text.slice(0, max);
  return /[\uD800-\uDBFF]$/.test(cut) ? cut.slice(0, -1) : cut;
}
