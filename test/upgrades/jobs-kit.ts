// Shared by the tests of upgrade jobs: a server whose steps take one second, and requests to it.
import { isJobRunning } from '../../src/upgrades/jobs/job-table.ts';
import { type Server, type ServerOptions, startServer } from '../kit/server.ts';

export const admin = 'token-of-the-administrator';
export const upgrades = '/admin/system/upgrades';
export const patch1 = 'pat_17022022_1250';
export const patch2 = 'pat_28042022_1260';
export const eleven = 'rel_14072022_2632';
export const license = { name: 'license.json', content: '{"license":true}' };

export type Message = { code: number; message: string; when: number };
export type Status = {
  status: { state: string; code: number; messages: Message[] };
  jobId: string;
  messageCount: number;
  progress: {
    done: number;
    total: number;
    steps: { done: number; total: number } | null;
    percent: number;
    elapsedMs: number;
    remainingMs: number | null;
  };
};
export type Failure = { error: { code: number; message: string; details: string[] } };

export const codesOf = ({ status: { messages } }: Status) => messages.map(({ code }) => code);
const minute = 60_000;

/** `server` is the one that the test has started last. */
export function useJobs() {
  const server = {} as Server;

  async function start(env: Record<string, string> = {}, options: ServerOptions = {}): Promise<void> {
    Object.assign(server, await startServer({ env: { UPGRADE_STEP_MS: '1000', ...env }, ...options }));
  }

  const upgrade = (id: string, parts: Parameters<Server['postParts']>[1] = {}) =>
    server.postParts(`${upgrades}/upgrade`, { versionManifest: JSON.stringify({ id }), ...parts }, admin);
  const release = (parts: Parameters<Server['postParts']>[1] = {}) =>
    upgrade(eleven, { upgradeSettings: '{}', licenseFile: license, ...parts });
  const get = async <T>(path: string) =>
    (await server.get(`${path}${path.includes('?') ? '&' : '?'}token=${admin}`)).json<T>();
  const status = () => get<Status>(upgrades);

  /** Advances the clock until the job has ended. */
  async function finish(): Promise<Status> {
    for (let minutes = 0; minutes < 60 && isJobRunning(server.store); minutes += 1)
      await server.runtime.advance(minute);
    return status();
  }

  return { server, start, upgrade, release, get, status, finish };
}
