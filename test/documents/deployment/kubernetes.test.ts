// Runs the commands of docs/operate/kubernetes.md with kubectl on the fake API server; Steward runs as a process
// where a cluster would run its pod. Skipped where kubectl or curl is not installed.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createDatabase } from '../../kit/postgres.ts';
import { type ApiServer, startApiServer } from '../../kubernetes/api-server.ts';
import { type Kubelet, startKubelet } from '../../kubernetes/kubelet.ts';
import { Ports, type Shell, checkout, expectAnswer, openShell, readCommands } from './page.ts';

const isInstalled = [
  ['kubectl', 'version', '--client'],
  ['curl', '--version'],
].every(([program = '', ...args]) => spawnSync(program, args).status === 0);

const commands = readCommands('docs/operate/kubernetes.md');
const namespaces = ['steward', 'steward-scratch'];

/** Validation needs the schemas of a real server, and no container runs to forward a port to. */
const kubectl = (program: string) => `#!/bin/sh
case " $* " in
  *" apply "*) exec ${program} "$@" --validate=false ;;
  *" port-forward "*) exec "${process.execPath}" "${join(checkout, 'test/documents/deployment/pod.js')}" "$@" > "$HOME/pod.log" 2>&1 ;;
  *) exec ${program} "$@" ;;
esac
`;

const kubeconfig = (server: string, user?: string) =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'test',
    clusters: [{ name: 'test', cluster: { server, 'insecure-skip-tls-verify': true } }],
    users: [{ name: 'test', user: user === undefined ? {} : { as: user } }],
    contexts: [{ name: 'test', context: { cluster: 'test', user: 'test' } }],
  });

describe.skipIf(!isInstalled)('the commands of docs/operate/kubernetes.md', () => {
  const ports = new Ports();
  let api: ApiServer;
  let kubelets: Kubelet[];
  let home: string;
  let shell: Shell;

  beforeAll(async () => {
    api = await startApiServer();
    const request = async (method: string, path: string, body?: unknown) => {
      const kind = method === 'PATCH' ? 'strategic-merge-patch+json' : 'json';
      const headers = { 'content-type': `application/${kind}` };
      const answer = await fetch(api.url + path, {
        method,
        headers,
        body: body ? JSON.stringify(body) : null,
      });
      return answer.json();
    };
    kubelets = namespaces.map((namespace) => startKubelet(request, namespace));
    await ports.reserve('8080');
    home = mkdtempSync(join(tmpdir(), 'steward-kubectl-'));
    const program = spawnSync('sh', ['-c', 'command -v kubectl'], { encoding: 'utf8' }).stdout.trim();
    writeFileSync(join(home, 'kubectl'), kubectl(program), { mode: 0o755 });
    writeFileSync(join(home, 'config'), kubeconfig(api.url));
    writeFileSync(join(home, 'pod'), kubeconfig(api.url, 'system:serviceaccount:steward-scratch:steward'));
    shell = openShell(checkout, {
      PATH: `${home}:${process.env.PATH}`,
      HOME: home,
      KUBECONFIG: join(home, 'config'),
      POD_KUBECONFIG: join(home, 'pod'),
      POD_STORE_URL: (await createDatabase()).url,
    });
  });
  afterAll(async () => {
    shell.kill();
    await Promise.all(kubelets.map((kubelet) => kubelet.close()));
    await api.close();
    rmSync(home, { recursive: true });
  });

  it.each(commands.map((command) => ({ ...command, title: `line ${command.line}, ${command.section}` })))(
    '$title',
    async (command) => {
      expectAnswer(command, ports.inOutput(await shell.run(ports.inCommands(command.script))));
    },
  );

  it('include the whole section "Try it in a scratch namespace"', () => {
    expect(commands.filter(({ section }) => section.startsWith('Try it'))).toHaveLength(7);
  });
});
