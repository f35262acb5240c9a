// Stands in for `kubectl port-forward service/steward` where no container runs: starts Steward with the ConfigMap
// and the Secret of the namespace and the permissions of its ServiceAccount. The test sets POD_KUBECONFIG and
// POD_STORE_URL.
import { execFileSync } from 'node:child_process';
import process from 'node:process';

const args = process.argv.slice(2);
const namespace = args[args.indexOf('-n') + 1];
const [port] = (args.at(-1) ?? '').split(':');

const list = (kind) => {
  const labels = ['-l', 'app.kubernetes.io/name=steward', '-o', 'json'];
  return JSON.parse(execFileSync('kubectl', ['-n', namespace, 'get', kind, ...labels], { encoding: 'utf8' }))
    .items;
};
const [settings] = list('configmaps');
const [secret] = list('secrets');
for (const [name, value] of Object.entries(settings.data)) process.env[name] = value;
// The fake API server keeps `stringData`, which a real one moves into `data`.
for (const [name, value] of Object.entries(secret.stringData)) process.env[name] = value;

process.env.STORE_URL = process.env.POD_STORE_URL;
process.env.KUBECONFIG = process.env.POD_KUBECONFIG;
process.env.KUBERNETES_NAMESPACE = namespace;
process.env.PORT = port;
await import('../../../dist/main.js');
