// SQL of tests that read the tables of deliveries.

/** All deliveries, pending and finished, as one table for `from`. */
export const allDeliveries = `(
  select d.id, d.number, d.webhook_id, d.event_id, d.redelivery_of, f.redelivered_as, coalesce(f.state, 'pending') as state,
    coalesce(json_array_length(coalesce(f.attempts, q.attempts)), 0) as attempts, q.claimed_by
  from deliveries d left join finished f on f.number = d.number left join queue q on q.number = d.number)`;
