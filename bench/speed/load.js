// The load of bench/speed.js, in its own process: each connection sends one request at a time, until `count` are sent. It uses bare
// sockets, because an HTTP client needs as much CPU time as the servers under load.
import { Buffer } from 'node:buffer';
import { connect } from 'node:net';
import process from 'node:process';

const endOfHead = Buffer.from('\r\n\r\n');
const endOfChunks = '\r\n0\r\n\r\n';

function busyMs() {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

function run({ port, requests, connections, count, status, length }) {
  return new Promise((resolve, reject) => {
    let asked = 0;
    let open = connections;
    const started = performance.now();
    const busyBefore = busyMs();

    function fail(error) {
      open = -1;
      reject(error);
    }

    function end(socket) {
      socket.end();
      open -= 1;
      if (open === 0) resolve({ ms: performance.now() - started, busyMs: busyMs() - busyBefore });
    }

    function openOne() {
      const isWhole = createReader(status, length);
      function ask() {
        socket.write(requests[asked % requests.length]);
        asked += 1;
      }
      function read(size, chunk) {
        if (!isWhole(chunk.subarray(0, size))) return;
        if (asked >= count) end(socket);
        else ask();
      }
      const callback = (size, chunk) => {
        try {
          read(size, chunk);
        } catch (error) {
          fail(error);
          socket.destroy();
        }
        return true;
      };
      const onread = { buffer: Buffer.alloc(256 * 1024), callback };
      const socket = connect({ host: '127.0.0.1', port, noDelay: true, onread }, ask);
      socket.on('error', fail);
    }

    for (let n = 0; n < connections; n += 1) openOne();
  });
}

function createReader(status, length) {
  const measure = length === undefined ? 'transfer-encoding: chunked' : `content-length: ${length}`;
  let left = 0;
  let tail = '';
  function begin(chunk) {
    const end = chunk.indexOf(endOfHead);
    const head = chunk.latin1Slice(0, end).toLowerCase();
    if (!head.startsWith(`http/1.1 ${status} `) || !head.includes(measure))
      throw new Error(`${status} and ${measure} were expected, and this came:\n${head}`);
    left = length === undefined ? Infinity : length + end + endOfHead.length;
  }
  return (chunk) => {
    if (left === 0) begin(chunk);
    left -= chunk.length;
    if (left !== Infinity) return left === 0;
    tail = (tail + chunk.latin1Slice(Math.max(0, chunk.length - endOfChunks.length))).slice(
      -endOfChunks.length,
    );
    if (tail === endOfChunks) left = 0;
    return left === 0;
  };
}

process.on('message', (task) => {
  run(task).then(
    (result) => process.send(result),
    (error) => process.send({ error: error.message }),
  );
});
