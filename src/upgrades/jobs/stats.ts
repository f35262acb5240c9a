// Computes the numbers about upgrade jobs for the metrics, from the store only, so that all processes show the same.
import type { Reader } from '../../store/state.ts';
import { maintenanceWindows, windowsAt } from '../schedule/windows.ts';
import { type Job, newestJob, runTotals } from './job-table.ts';

const noJob = { running: false, stepsDone: 0, stepsTotal: 0, stepAgeSeconds: 0 };

export function upgradeStats(reader: Reader, at: number) {
  const job = reader.read(newestJob);
  const { ended, lastSuccessAt } = reader.read(runTotals);
  return {
    ...(job?.state === 'in_progress' ? runningStats(job, at) : noJob),
    ended: Object.entries(ended).flatMap(([operation, states]) =>
      Object.entries(states).map(([state, count]) => ({ operation, state, count })),
    ),
    lastSuccessSeconds: (lastSuccessAt ?? 0) / 1000,
    scheduledSeconds: job?.state === 'scheduled' ? (job.startAt ?? 0) / 1000 : 0,
    isWindowOpen: windowsAt(reader.read(maintenanceWindows), at).open,
  };
}

function runningStats({ progress }: Job, at: number) {
  return {
    running: true,
    stepsDone: progress.done,
    stepsTotal: progress.total,
    stepAgeSeconds: Math.max(0, at - progress.stepStartedAt) / 1000,
  };
}
