// What a page does: dark or light, the menu on a phone, the search, copying code. Without it, everything can still be read.
const page = document.documentElement;

// A page that is opened as a file may be refused a memory; then the choice holds for the page.
const remembered = (write) => {
  try {
    return write ? localStorage.setItem('theme', write) : localStorage.getItem('theme');
  } catch {
    return null;
  }
};
const chosen = remembered();
if (chosen) page.dataset.theme = chosen;
document.querySelector('.theme').addEventListener('click', () => {
  const dark = page.dataset.theme ? page.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  page.dataset.theme = dark ? 'light' : 'dark';
  remembered(page.dataset.theme);
});

const menu = document.querySelector('.menu');
menu.addEventListener('click', () => {
  const open = document.body.classList.toggle('menu-open');
  menu.setAttribute('aria-expanded', String(open));
});
const current = document.querySelector('nav [aria-current]');
if (current) document.querySelector('nav').scrollTop = current.offsetTop - 160;

for (const block of document.querySelectorAll('.code')) {
  const button = Object.assign(document.createElement('button'), { type: 'button', textContent: 'Copy' });
  button.addEventListener('click', async () => {
    await navigator.clipboard.writeText(block.querySelector('code').textContent);
    button.textContent = 'Copied';
    setTimeout(() => (button.textContent = 'Copy'), 1500);
  });
  if (navigator.clipboard) block.append(button);
}

const input = document.getElementById('search');
const found = document.getElementById('found');
const FOUND_MAX = 12;
const AROUND = 60;
let index = null;

const loaded = () =>
  new Promise((resolve, reject) => {
    if (window.searchIndex) return resolve();
    const script = Object.assign(document.createElement('script'), {
      src: `${page.dataset.root}/assets/search-index.js`,
      onload: resolve,
      onerror: reject,
    });
    document.head.append(script);
  });

const prepared = () =>
  window.searchIndex.map((entry) => ({
    ...entry,
    words: { page: entry.page.toLowerCase(), heading: entry.heading.toLowerCase(), text: entry.text.toLowerCase() },
  }));

// Every word must be there; where it stands says how much it counts, and at the beginning of a word it counts twice.
const worth = ({ words, aside }, wanted) => {
  let sum = 0;
  for (const word of wanted) {
    const points = [
      [words.page, 12],
      [words.heading, 8],
      [words.text, 1],
    ].map(([text, weight]) => {
      if (!text.includes(word)) return 0;
      return ` ${text.replace(/[^a-z0-9_$-]/g, ' ')}`.includes(` ${word}`) ? 2 * weight : weight;
    });
    const best = points.reduce((a, b) => a + b, 0);
    if (best === 0) return 0;
    sum += best;
  }
  return aside ? sum / 3 : sum;
};

const excerpt = ({ text, words }, wanted) => {
  const at = Math.max(0, Math.min(...wanted.map((word) => words.text.indexOf(word)).filter((place) => place >= 0)));
  if (!Number.isFinite(at)) return text.slice(0, 2 * AROUND);
  const from = Math.max(0, at - AROUND);
  return `${from > 0 ? '…' : ''}${text.slice(from, at + 2 * AROUND)}…`;
};

const search = async () => {
  const wanted = input.value.toLowerCase().split(/\s+/).filter(Boolean);
  if (wanted.length === 0) {
    found.hidden = true;
    return;
  }
  if (!index) {
    await loaded();
    index = prepared();
  }
  const best = index
    .map((entry) => ({ entry, points: worth(entry, wanted) }))
    .filter(({ points }) => points > 0)
    .sort((a, b) => b.points - a.points)
    .slice(0, FOUND_MAX);
  found.replaceChildren(
    ...best.map(({ entry }) => {
      const item = document.createElement('li');
      const link = document.createElement('a');
      link.href = `${page.dataset.root}/${entry.address}#${entry.slug}`;
      const title = document.createElement('b');
      title.textContent = entry.page === entry.heading ? entry.page : `${entry.page} › ${entry.heading}`;
      const text = document.createElement('span');
      text.textContent = excerpt(entry, wanted);
      link.append(title, text);
      item.append(link);
      return item;
    }),
  );
  if (best.length === 0) {
    const item = document.createElement('li');
    item.textContent = 'Nothing found';
    found.append(item);
  }
  found.hidden = false;
};

input.addEventListener('input', search);
input.addEventListener('focus', search);
addEventListener('keydown', (event) => {
  const links = [...found.querySelectorAll('a')];
  const at = links.indexOf(document.activeElement);
  if (event.key === '/' && !/^(input|textarea)$/i.test(document.activeElement.tagName)) {
    event.preventDefault();
    input.focus();
  } else if (event.key === 'Escape') {
    found.hidden = true;
    input.blur();
  } else if (!found.hidden && event.key === 'ArrowDown') {
    event.preventDefault();
    links[Math.min(at + 1, links.length - 1)]?.focus();
  } else if (!found.hidden && event.key === 'ArrowUp') {
    event.preventDefault();
    (at > 0 ? links[at - 1] : input).focus();
  } else if (event.key === 'Enter' && document.activeElement === input) links[0]?.click();
});
addEventListener('click', ({ target }) => {
  if (!target.closest('.search') || target.closest('#found a')) found.hidden = true;
});
