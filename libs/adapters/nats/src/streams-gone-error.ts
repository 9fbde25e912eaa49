/** The streams were deleted, or deleted and created again, while a host used them: the journals of its sessions are lost. */
export class StreamsGoneError extends Error {
  override readonly name = 'StreamsGoneError';
  readonly code = 'streams_gone';
  constructor() {
    super(
      'the streams of the sessions were deleted while this host used them; restore a backup, or create new streams: cox admin streams, or a restart of the host',
    );
  }
}
