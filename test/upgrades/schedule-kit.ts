// Shared by the tests of scheduled jobs.
import { expect } from 'vitest';
import { maintenanceWindows } from '../../src/upgrades/schedule/windows.ts';
import { createFakeRuntime } from '../kit/runtime.ts';
import { type Status, admin, patch1, useJobs } from './jobs-kit.ts';

export const { server, start, upgrade, release, get, status, finish } = useJobs();

export const minute = 60_000;
export const hour = 60 * minute;
export const day = 24 * hour;
export const iso = (at: number) => new Date(at).toISOString();
export const post = (path: string, fields: Record<string, string> = {}) =>
  server.post(`/admin/system/${path}`, { token: admin, ...fields });

/** Schedules a patch, and returns the time of its start and its id. */
export async function schedule(aheadMs = hour): Promise<{ startAt: number; jobId: string }> {
  const startAt = server.runtime.now() + aheadMs;
  const accepted = await upgrade(patch1, { startAt: String(startAt) });
  expect(accepted.statusCode, accepted.body).toBe(200);
  return { startAt, jobId: accepted.json<Status>().jobId };
}

/** Another process continues with the same store at this time. */
export async function restartAt(at: number, env: Record<string, string> = {}): Promise<void> {
  await server.close();
  await start(env, { store: await server.store.reopen(), runtime: createFakeRuntime(at) });
  await server.runtime.advance(0);
}

/** Windows that are closed at the time of the tests. */
const saturdays = [{ days: ['sat'], from: '22:00', to: '04:00', timeZone: 'UTC' }] as const;

export const closeWindows = () =>
  server.store.update((transaction) => transaction.write(maintenanceWindows, saturdays));
