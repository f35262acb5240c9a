// The peer of bench/speed.js: the npm package `soap` with the same WSDL and the same data, from the folder in its
// argument.
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { listen } from 'soap';

const [folder] = process.argv.slice(2);
const wsdl = await readFile(join(folder, 'catalog.wsdl'), 'utf8');
const { MessageVersion, services } = JSON.parse(await readFile(join(folder, 'peer.json'), 'utf8'));
const port = {
  GetMessageVersion: () => ({ MessageVersion }),
  GetServiceDescriptions: () => ({ ServiceDescriptions: { ServiceDescription: services } }),
};

const server = createServer();
server.listen(0, '127.0.0.1', () => {
  listen(server, '/services', { Catalog: { ServiceCatalogPort: port } }, wsdl);
  process.stderr.write(`The peer listens on http://127.0.0.1:${server.address().port}\n`);
});
