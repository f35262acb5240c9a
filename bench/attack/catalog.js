// Attacks on the SOAP catalog: a large listing for many clients that do not read it.
import { URLSearchParams } from 'node:url';
import { setTimeout as pause } from 'node:timers/promises';
import { fetch } from 'undici';
import { formats, head, open, write } from './sockets.js';

const namespaces = 'http://www.example.com/schemas/Product';

function envelope(version) {
  return (
    '<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body>' +
    `<GetServiceDescriptions xmlns="${namespaces}/${version}"/></s:Body></s:Envelope>`
  );
}

export async function addServices({ baseUrl, token }, count) {
  const description = 'x'.repeat(4000);
  const add = async (index) => {
    const fields = { token, serviceName: `Service${index}`, type: 'MapServer', description };
    const body = new URLSearchParams(fields);
    await fetch(`${baseUrl}/admin/services/createService`, { method: 'POST', body });
  };
  for (let index = 0; index < count; index += 20)
    await Promise.all(Array.from({ length: 20 }, (_, offset) => add(index + offset)));
}

async function listWithoutReading(baseUrl, version) {
  const all = await Promise.all(Array.from({ length: 30 }, () => open(baseUrl)));
  const body = envelope(version);
  for (const connection of all) {
    await write(connection, head('/services', { contentType: formats.soap, length: body.length }) + body);
    connection.socket.pause();
  }
  await pause(3000);
  for (const { socket } of all) socket.destroy();
}

export const catalogAttacks = {
  'listings of 8,000 services in another namespace, 30 clients that do not read': async (target) => {
    await addServices(target, 8000);
    await listWithoutReading(target.baseUrl, '9.9');
    await listWithoutReading(target.baseUrl, '10.0');
    return {};
  },
};
