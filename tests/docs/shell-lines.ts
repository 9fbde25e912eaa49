/** Reads the commands of a block of shell as far as it takes to know which `cox` is called with what. */

/** @returns the words behind each `cox` of a block: also in `$(…)`, behind pipes, and as `npm start --`. */
export function coxCalls(block: string): string[][] {
  return simpleCommands(block).flatMap((words) => {
    const behind = words.findIndex((word) => !/^[A-Za-z_]+=/.test(word));
    const command = words.slice(Math.max(behind, 0));
    if (command[0] === 'npm' && command[1] === 'start') return [['demo', ...command.slice(3)]];
    const at = command.indexOf('cox');
    // `docker compose run --rm cox …`, `npx cox …`; elsewhere the word is an argument, or names a container.
    const before = command.slice(0, at);
    const called =
      at === 0 || (at > 0 && /^(npx|docker|exec)$/.test(before[0] ?? '') && !before.includes('--entrypoint'));
    return called ? [command.slice(at + 1)] : [];
  });
}

/** The commands of a block, each as its words; those inside `$(…)` first. */
export function simpleCommands(block: string): string[][] {
  const commands: string[][] = [];
  let words: string[] = [];
  let word: string | null = null;
  let redirected = false;
  const endWord = () => {
    if (word !== null && !redirected) words.push(word);
    if (word !== null) redirected = false;
    word = null;
  };
  const endCommand = () => {
    endWord();
    if (words.length > 0) commands.push(words);
    words = [];
  };
  const text = block.replace(/\\\n/g, ' ').replace(/<<'?(\w+)'?[\s\S]*?\n\1$/gm, '');
  for (let at = 0; at < text.length; at += 1) {
    const char = text[at] as string;
    const placeholder = /^<[a-z ]+>/.exec(text.slice(at))?.[0];
    if (char === '\\') {
      word = (word ?? '') + (text[at + 1] ?? '');
      at += 1;
    } else if (char === "'") {
      const end = text.indexOf("'", at + 1);
      word = (word ?? '') + text.slice(at + 1, end);
      at = end;
    } else if (char === '"' || text.startsWith('$(', at)) {
      const end = char === '"' ? endOfQuotes(text, at) : endOfParentheses(text, at + 1);
      const inner = text.slice(at + (char === '"' ? 1 : 2), end);
      for (const nested of char === '"' ? substitutions(inner) : [inner]) commands.push(...simpleCommands(nested));
      word = `${word ?? ''}${inner}`;
      at = end;
    } else if (placeholder) {
      word = (word ?? '') + placeholder;
      at += placeholder.length - 1;
    } else if (char === '#' && word === null) {
      const end = text.indexOf('\n', at);
      at = end < 0 ? text.length : end - 1;
    } else if (char === '>' || char === '<') {
      if (word !== null && /^\d+$/.test(word)) word = null;
      endWord();
      redirected = true;
    } else if ('|&;\n(){}'.includes(char) && !(char === '{' && word !== null) && !(char === '}' && word !== null)) {
      if (!(char === '&' && redirected)) endCommand();
    } else if (/\s/.test(char)) endWord();
    else word = (word ?? '') + char;
  }
  endCommand();
  return commands;
}

function endOfQuotes(text: string, from: number): number {
  for (let at = from + 1; at < text.length; at += 1) {
    if (text[at] === '\\') at += 1;
    else if (text.startsWith('$(', at)) at = endOfParentheses(text, at + 1);
    else if (text[at] === '"') return at;
  }
  throw new Error(`quotes that are not closed: ${text.slice(from)}`);
}

function endOfParentheses(text: string, from: number): number {
  let depth = 0;
  for (let at = from; at < text.length; at += 1) {
    if (text[at] === '(') depth += 1;
    if (text[at] === ')') depth -= 1;
    if (depth === 0) return at;
  }
  throw new Error(`parentheses that are not closed: ${text.slice(from)}`);
}

function substitutions(quoted: string): string[] {
  const found: string[] = [];
  for (let at = quoted.indexOf('$('); at >= 0; at = quoted.indexOf('$(', at)) {
    const end = endOfParentheses(quoted, at + 1);
    found.push(quoted.slice(at + 2, end));
    at = end;
  }
  return found;
}
