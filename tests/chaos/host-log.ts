/** What hosts wrote into their logs of the effects that they began, and of outcomes that came too late. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type History, jsonLines } from './history.ts';

/** One such line. */
export interface HostLine {
  readonly what: 'up' | 'began' | 'late';
  readonly atMs: number;
  readonly pid: number;
  /** The host's incarnation, as records hold it; of `up`. */
  readonly host?: string | undefined;
  readonly session?: string | undefined;
  readonly effect?: string | undefined;
}

interface LogLine {
  readonly msg?: string;
  readonly time: number;
  readonly pid: number;
  readonly host?: string;
  readonly session_id?: string;
  readonly effect_id?: string;
}

const SAYS: Readonly<Record<string, HostLine['what']>> = {
  'session host is up': 'up',
  'effect starts': 'began',
  'late outcome dropped': 'late',
};

/** Reads the logs of a run's hosts: the lines of each in their order, by the history's clock. */
export function readHostLogs(folder: string, history: History): HostLine[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((name) => name.startsWith('host-'))
    .flatMap((name) => hostLinesIn(readFileSync(join(folder, name), 'utf8'), history));
}

/** The same of a log's text. What a process writes there that is no line of its log is passed over. */
export function hostLinesIn(text: string, history: History): HostLine[] {
  const lines = text.split('\n').filter((line) => line.startsWith('{') && line.endsWith('}'));
  return jsonLines<LogLine>(`${lines.filter(isOfUse).join('\n')}\n`).flatMap(({ msg, time, pid, ...about }) => {
    const what = SAYS[msg ?? ''];
    if (!what) return [];
    const { host, session_id: session, effect_id: effect } = about;
    return [{ what, atMs: history.atOfWall(time), pid, host, session, effect }];
  });
}

// Most of a log is about other things, and need not be read as JSON for that.
const isOfUse = (line: string) => Object.keys(SAYS).some((said) => line.includes(said));
