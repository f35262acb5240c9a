// Progress by steps: the recorded jobs are replayed, and the remaining time is compared with what it really was.
import { describe, expect, it } from 'vitest';
import {
  type Progress,
  advanceProgress,
  remainingMs,
  startProgress,
} from '../../src/upgrades/jobs/progress.ts';
import { type RecordedStep, planOf, readRecording } from './recording.ts';

const recordings = ['simulated-release', 'cluster-release'];

/** How far the estimate may be off at the end of a job, where a factor says little. */
const toleranceShare = 0.02;

const looksPerStep = 4;

type Look = { share: number; percent: number; estimate: number | undefined; actual: number };

/** Asks for the remaining time several times during each step. */
function replay(recorded: readonly RecordedStep[], earlier?: Progress) {
  const plan = planOf(recorded);
  const totalMs = recorded.reduce((sum, { ms }) => sum + ms, 0);
  const looks: Look[] = [];
  let at = 0;
  let progress = startProgress(plan, earlier, at);
  for (const [index, { ms }] of recorded.entries()) {
    for (let look = 0; look < looksPerStep; look += 1) {
      const now = at + (look / looksPerStep) * ms;
      const estimate = remainingMs(progress, undefined, now);
      looks.push({ share: now / totalMs, percent: progress.percent, estimate, actual: totalMs - now });
    }
    at += ms;
    progress = advanceProgress(progress, plan, index, at);
  }
  return { looks, progress, totalMs };
}

function expectAccurate(
  { looks, totalMs }: ReturnType<typeof replay>,
  { from, factor }: { from: number; factor: number },
): void {
  const tolerance = toleranceShare * totalMs;
  const wrong = looks.filter(
    ({ share, estimate = Infinity, actual }) =>
      share >= from && (estimate > factor * actual + tolerance || estimate < actual / factor - tolerance),
  );
  expect(wrong).toEqual([]);
}

describe.each(recordings)('the recorded job %s', (name) => {
  const recorded = readRecording(name);

  it('has steps of very different durations', () => {
    const durations = recorded.filter(({ id }) => id === 'verify').map(({ ms }) => ms);
    expect(Math.max(...durations) / Math.min(...durations)).toBeGreaterThan(3);
  });

  it('has a remaining time within a factor of 2.5 from 20 % on, without an earlier job', () => {
    expectAccurate(replay(recorded), { from: 0.2, factor: 2.5 });
  });

  it('has one within a factor of two from the start, after the same job', () => {
    expectAccurate(replay(recorded, replay(recorded).progress), { from: 0, factor: 2 });
  });

  it('has a percentage that does not go down, and that follows the time', () => {
    const { looks, progress } = replay(recorded, replay(recorded).progress);
    const percents = looks.map(({ percent }) => percent);
    expect(percents).toEqual(percents.toSorted((a, b) => a - b));
    for (const { share, percent } of looks) expect(Math.abs(percent - 100 * share)).toBeLessThan(20);
    expect(progress).toMatchObject({ done: recorded.length, total: recorded.length, percent: 99 });
  });
});
