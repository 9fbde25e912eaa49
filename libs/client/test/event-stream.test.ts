import fc from 'fast-check';
import { expect, test } from 'vitest';
import { EventStreamParser } from '../src/http/event-stream.ts';

const STREAM =
  '\uFEFFretry: 250\n\n: still here\n\nid: 1\nevent: record\ndata: {"n":1}\r\n\r\ndata\rdata:two\n\nevent: nothing\n\nevent: delta\ndata:  spaced \ndata: lines\n\ndata: unfinished';
const EVENTS = [
  { event: 'record', data: '{"n":1}' },
  { event: 'message', data: '\ntwo' },
  { event: 'delta', data: ' spaced \nlines' },
];

test('events are read as the HTML standard reads them, wherever the pieces are cut', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: STREAM.length })), (cuts) => {
      const parser = new EventStreamParser();
      const places = [0, ...cuts.sort((a, b) => a - b), STREAM.length];
      const pieces = places.slice(1).map((end, i) => STREAM.slice(places[i], end));
      expect(pieces.flatMap((piece) => parser.take(piece))).toEqual(EVENTS);
      expect(parser.retryMs).toBe(250);
    }),
  );
});

test('an event without an end is not kept without an end', () => {
  const parser = new EventStreamParser();
  const piece = 'x'.repeat(8 * 1024 * 1024);
  const feed = () => {
    for (let i = 0; i < 16; i++) parser.take(i === 0 ? `data: ${piece}` : piece);
  };
  expect(feed).toThrow(expect.objectContaining({ code: 'answer_unreadable' }));
});

test('comments without end are passed over', () => {
  const parser = new EventStreamParser();
  const comment = `: ${'x'.repeat(1024 * 1024)}\n\n`;
  for (let i = 0; i < 80; i++) expect(parser.take(comment)).toEqual([]);
  expect(parser.take('data: heard\n\n')).toEqual([{ event: 'message', data: 'heard' }]);
});
