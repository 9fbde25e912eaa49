/**
 * Arguments for people and external systems: without texts that look like secrets, and shortened.
 */
import type { Json } from '../wire/json.ts';
import { cutMiddle, cutText } from '../wire/unicode-text.ts';

const SECRET_KEY = /pass(word|wd|phrase)?$|secret|token|api[_-]?key|private[_-]?key|credential|authorization|cookie/i;
const SECRET_TEXT =
  /(Bearer\s+)[\w.~+/-]{8,}=*|(\b[a-z][a-z0-9+.-]{0,20}:\/\/[^/\s:@]*:)[^/\s@]+(?=@)|\b(sk|pk|ghp|gho|ghs|xox[abp]|AKIA|whsec)[-_]?[A-Za-z0-9_-]{12,}|-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*/g;
const REDACTED = '[redacted]';

/** Whether a text contains a credential by its form, such as a bearer token, an API key or a private key. */
export function hasSecretForm(text: string): boolean {
  return text.search(SECRET_TEXT) >= 0;
}

/** Names of members that count tokens. Such a number is not a secret. */
const COUNT_KEY = /tokens/i;

/** Limits of the shown arguments. */
export interface ShownBounds {
  /** Characters of all texts and names together. */
  readonly chars: number;
  /** The number of characters for which any value other than a text counts. */
  readonly valueChars: number;
  /** Characters of one text. */
  readonly textChars: number;
  /** Items of one list. */
  readonly listItems: number;
  /** Members of one object. */
  readonly members: number;
  /** Levels of lists and objects. A deeper one becomes an ellipsis. */
  readonly depth: number;
  /** Whether numbers with the name of a token count are shown. */
  readonly counts: boolean;
  /** Whether a long text is cut in its middle; by default at its end. */
  readonly keepsEnd?: boolean;
}

const ARGS: ShownBounds = {
  chars: 12_000,
  valueChars: 8,
  textChars: 256,
  listItems: 16,
  members: 32,
  depth: 4,
  counts: false,
};

const DECIDED: ShownBounds = { ...ARGS, textChars: 2_000, keepsEnd: true };

/**
 * Like {@link redactArgs}, for a person who decides about the call: up to 2,000 characters of each text, with its end,
 * so that a long beginning cannot hide it. All texts together are bounded: after about six long ones, nothing of the
 * next is shown.
 */
export function redactForDecision(value: Json): Json {
  return redactJson(value, DECIDED);
}

/**
 * A copy of arguments for other readers. Values that are secrets by their name or form are replaced, long texts, lists
 * and objects cut, and deep lists and objects replaced by an ellipsis. At most about 12,000 characters of texts and
 * names. It is not a security boundary: a secret of no known form under an innocent name remains.
 */
export function redactArgs(value: Json): Json {
  return redactJson(value, ARGS);
}

/** Like {@link redactArgs}, for any JSON, with bounds of the caller. */
export function redactJson(value: Json, bounds: ShownBounds): Json {
  const { chars, valueChars, textChars, listItems, members, depth: deepest, counts, keepsEnd = false } = bounds;
  let budget = chars;
  const text = (raw: string): string => {
    // The margin keeps a secret at the cut whole, so that its form is still recognizable.
    const beginning = keepsEnd ? raw : cutText(raw, 4 * textChars);
    const clean = beginning.replace(SECRET_TEXT, (_, ...groups) => {
      const [bearer, url] = groups as (string | undefined)[];
      return `${bearer ?? url ?? ''}${REDACTED}`;
    });
    const max = Math.max(0, Math.min(textChars, budget));
    const isCut = beginning.length < raw.length || (raw.length > max && clean.length > max);
    const short = keepsEnd ? cutMiddle(clean, max) : isCut ? `${cutText(clean, max)}…` : clean;
    budget -= short.length;
    return short;
  };
  const isSecret = (key: string, item: Json): boolean =>
    SECRET_KEY.test(key) && item !== null && !(counts && typeof item === 'number' && COUNT_KEY.test(key));
  const copy = (one: Json, depth: number): Json => {
    if (typeof one === 'string') return text(one);
    budget -= valueChars;
    if (typeof one !== 'object' || one === null) return one;
    if (depth >= deepest || budget <= 0) return '…';
    if (Array.isArray(one)) {
      const list = one.slice(0, listItems).map((item) => copy(item, depth + 1));
      return one.length > listItems ? [...list, `… ${one.length - listItems} more`] : list;
    }
    const entries = Object.entries(one);
    const shown = entries.slice(0, members).map(([key, item]): [string, Json] => {
      budget -= key.length;
      return [cutText(key, 128), isSecret(key, item) ? REDACTED : copy(item, depth + 1)];
    });
    const rest = entries.length - members;
    return Object.fromEntries(rest > 0 ? [...shown, ['…', `${rest} more`]] : shown);
  };
  return copy(value, 0);
}
