/** The entry point of the page. */
import './zod-without-eval.ts';
import { render } from 'preact';
import { App } from './page/app.tsx';
import { chosenTheme, showTheme } from './page/theme.ts';
import { takeToken } from './sign-in/token-storage.ts';
import './styles/page.css';
import './styles/session.css';
import './styles/statechart.css';

// Runs before any other code reads the address.
const taken = takeToken(window);
showTheme(document.documentElement, chosenTheme(localStorage));
const root = document.getElementById('app');
if (root) render(<App taken={taken} />, root);
