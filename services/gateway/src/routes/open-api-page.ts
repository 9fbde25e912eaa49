/**
 * The page at `/docs`. It reads `/openapi.json` and inserts its texts with `textContent`, so they are never interpreted
 * as markup.
 */

/** The HTML of the page. */
export const PAGE_HTML = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Coxswain gateway</title>
<link rel="stylesheet" href="/docs.css">
<script src="/docs.js" defer></script>
</head>
<body>
<main id="page"><h1>Coxswain gateway</h1><p>Reads <a href="/openapi.json">/openapi.json</a> …</p></main>
</body>
</html>
`;

/** The style sheet, for dark and light mode. */
export const PAGE_STYLE = `:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { margin: 0 auto; max-width: 60rem; padding: 1rem; }
h2 { margin-top: 2rem; border-bottom: 1px solid; }
details { margin: 0.5rem 0; border: 1px solid color-mix(in srgb, currentColor 30%, transparent); border-radius: 4px; padding: 0.5rem; }
summary { cursor: pointer; }
code, pre { font: 0.9em/1.4 ui-monospace, monospace; overflow-wrap: anywhere; }
pre { overflow: auto; max-height: 24rem; }
.method { display: inline-block; min-width: 4rem; font-weight: 700; }
table { border-collapse: collapse; width: 100%; }
td, th { text-align: left; vertical-align: top; padding: 0.25rem 0.5rem 0.25rem 0; }
`;

/** The script that fills the page. */
export const PAGE_SCRIPT = `'use strict';
const element = (name, text, ...children) => {
  const made = document.createElement(name);
  if (text) made.textContent = text;
  made.append(...children);
  return made;
};
const schemaOf = (content) => Object.entries(content || {}).map(([type, { schema }]) =>
  element('div', '', element('p', type), element('pre', JSON.stringify(schema, null, 2))));
const parameters = (list) => {
  if (!list || list.length === 0) return [];
  const table = element('table');
  for (const { name, in: where, required, description, schema } of list) {
    table.append(element('tr', '',
      element('td', '', element('code', name)),
      element('td', where + (required ? ', needed' : '')),
      element('td', description || JSON.stringify(schema))));
  }
  return [element('h4', 'Parameters'), table];
};
const operation = (path, method, { summary, description, parameters: list, requestBody, responses, ...more }) => {
  const head = element('summary', '');
  const name = element('span', method.toUpperCase());
  name.className = 'method';
  head.append(name, element('code', path), ' ', summary || '');
  const body = requestBody ? [element('h4', 'Body'), ...schemaOf(requestBody.content)] : [];
  const answers = Object.entries(responses || {}).flatMap(([status, answer]) =>
    [element('h4', status + ' ' + (answer.description || '')), ...schemaOf(answer.content)]);
  return element('details', '', head,
    element('p', (description || '') + (more['x-scope'] ? ' Needs ' + (more['x-scope'] === 'any' ? 'a token.' : 'the scope ' + more['x-scope'] + '.') : ' Open to all.')),
    ...parameters(list), ...body, ...answers);
};
fetch('/openapi.json').then((answer) => answer.json()).then(({ info, paths }) => {
  const page = document.getElementById('page');
  page.replaceChildren(element('h1', info.title + ' ' + info.version), element('p', info.description));
  const groups = new Map();
  for (const [path, methods] of Object.entries(paths)) {
    for (const [method, said] of Object.entries(methods)) {
      const group = (said.tags || ['other'])[0];
      if (!groups.has(group)) groups.set(group, []);
      groups.get(group).push(operation(path, method, said));
    }
  }
  for (const [group, operations] of groups) page.append(element('h2', group), ...operations);
}).catch((error) => {
  document.getElementById('page').append(element('p', String(error)));
});
`;
