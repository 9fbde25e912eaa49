/** Denies prompts, follow-ups and steers that contain a secret, before a model or its provider gets them. */
import { allow, deny, type HookHandler } from '@coxswain/client';

/**
 * The forms of providers' keys. Prompts are untrusted, so no prompt may make a pattern slow: every repetition has an
 * upper bound, and the time is linear in the prompt.
 */
export const SECRETS: Readonly<Record<string, RegExp>> = {
  'a private key': /-----BEGIN (?:[A-Z]{1,12} ){0,3}PRIVATE KEY-----/,
  'an AWS access key': /\b(?:AKIA|ASIA)[A-Z2-7]{16}\b/,
  'an Anthropic key': /\bsk-ant-[\w-]{32}/,
  'an OpenAI key': /\bsk-[\w-]{40}/,
  'a Google key': /\bAIza[\w-]{35}/,
  'a GitHub token': /\b(?:gh[pousr]_[A-Za-z0-9]{36}|github_pat_\w{82})/,
  'a GitLab token': /\bglpat-[\w-]{20}/,
  'a Slack token': /\bxox[abeoprs]-[A-Za-z0-9-]{20}/,
  'a Stripe key': /\b[rs]k_live_[A-Za-z0-9]{24}/,
  'an npm token': /\bnpm_[A-Za-z0-9]{36}/,
  'a JSON web token': /\beyJ[\w-]{10,400}\.eyJ[\w-]{10}/,
  'a password in an address': /\b[a-z][a-z0-9+.-]{1,20}:\/\/[^\s:@/]{0,64}:[^\s:@/]{3,128}@/i,
  'an assigned secret':
    /(?:key|secret|token|passw(?:or)?d)["']?\s{0,2}[:=]\s{0,2}["']?(?=[a-z_+/~-]{0,40}\d)[\w+/~-]{20}/i,
};

/** Names the kind and the line of a finding, and never quotes it: a reason is shown, logged and recorded. */
export const refuseSecrets: HookHandler<'UserPromptSubmit'> = ({ prompt, origin }) => {
  for (const [kind, pattern] of Object.entries(SECRETS)) {
    const at = prompt.search(pattern);
    if (at < 0) continue;
    const line = prompt.slice(0, at).split('\n').length;
    return deny(`line ${line} of the ${origin} holds ${kind}; take it out and send it again`);
  }
  return allow();
};
