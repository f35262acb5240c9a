// Tests the limit of work that may take long, on a fake clock.
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { TimeShare } from '../../src/lib/time-share.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] });
});
afterEach(() => {
  vi.useRealTimers();
});

const taking = (ms: number) => () => {
  vi.advanceTimersByTime(ms);
  return Promise.resolve('done');
};

it('lets short work run at any time', async () => {
  const share = new TimeShare();
  expect(await share.run(taking(49))).toBe('done');
  expect(share.isAllowed()).toBe(true);
});

it('pauses after long work for fifty times as long', async () => {
  const share = new TimeShare();
  await share.run(taking(100));
  vi.advanceTimersByTime(4_999);
  expect(share.isAllowed()).toBe(false);
  vi.advanceTimersByTime(1);
  expect(share.isAllowed()).toBe(true);
});

it('does not count the time on the way to a database', async () => {
  const share = new TimeShare();
  await share.run(taking(249), 200);
  expect(share.isAllowed()).toBe(true);
  await share.run(taking(300), 200);
  vi.advanceTimersByTime(4_999);
  expect(share.isAllowed()).toBe(false);
  vi.advanceTimersByTime(1);
  expect(share.isAllowed()).toBe(true);
});

it('pauses for ten seconds at most', async () => {
  const share = new TimeShare();
  await share.run(taking(3_000));
  vi.advanceTimersByTime(10_000);
  expect(share.isAllowed()).toBe(true);
});

it('pauses also after work that has failed', async () => {
  const share = new TimeShare();
  const failing = () => {
    vi.advanceTimersByTime(100);
    return Promise.reject(new Error('too slow'));
  };
  await expect(share.run(failing)).rejects.toThrow('too slow');
  expect(share.isAllowed()).toBe(false);
});
