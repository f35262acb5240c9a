// The values of the metrics about upgrade jobs, from the store only, so that all processes show the same.
import type { Reader } from '../../store/state.ts';
import { maintenanceWindows, windowsAt } from '../schedule/windows.ts';
import { newestJob, runTotals } from './job-table.ts';

export function upgradeStats(reader: Reader, at: number) {
  const job = reader.read(newestJob);
  const running = job?.state === 'in_progress' ? job.progress : undefined;
  const { ended, lastSuccessAt } = reader.read(runTotals);
  return {
    upgrade_running: running ? 1 : 0,
    upgrade_steps_done: running?.done ?? 0,
    upgrade_steps: running?.total ?? 0,
    upgrade_step_age_seconds: running ? Math.max(0, at - running.stepStartedAt) / 1000 : 0,
    upgrade_last_success_timestamp_seconds: (lastSuccessAt ?? 0) / 1000,
    upgrade_scheduled_timestamp_seconds: job?.state === 'scheduled' ? (job.startAt ?? 0) / 1000 : 0,
    upgrade_window_open: windowsAt(reader.read(maintenanceWindows), at).open ? 1 : 0,
    upgrade_jobs_total: Object.entries(ended).flatMap(([operation, states]) =>
      Object.entries(states).map(([state, count]) => ({ operation, state, count })),
    ),
  };
}
