/** The streams under a living host are not the ones that it began with: what its sessions stood on is gone. */
export class StreamsGoneError extends Error {
  override readonly name = 'StreamsGoneError';
  readonly code = 'streams_gone';
  constructor() {
    super('the streams of the sessions were deleted while this host used them; start it again, and it makes new ones');
  }
}
