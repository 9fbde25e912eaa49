/** The response to an HTTP request that this process sends. */
import type { ClientRequest, IncomingMessage } from 'node:http';

/** Waits for the response. Call it before the request is ended. Rejects with the error of the request. */
export function responseTo(request: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    request.once('response', resolve);
    // Not `once`: a broken connection may report a second error.
    request.on('error', reject);
    // After a change of the protocol (HTTP 101) there is neither a response nor an error, and the signal has no effect.
    request.once('close', () => reject(new Error('the server closed the connection without a response')));
  });
}
