// SQL of tests that read the tables of deliveries.

/** All deliveries, pending and finished, as one table for `from`. */
export const allDeliveries = `(
  select d.id, d.number, d.webhook_id, e.id as event_id, d.redelivery_of, d.redelivered_as, d.state,
    coalesce(json_array_length(d.attempts), 0) as attempts, d.claimed_by
  from (
    select id, number, webhook_id, event_number, redelivery_of, redelivered_as, state, attempts, null as claimed_by from finished
    union all select id, number, webhook_id, event_number, redelivery_of, null, 'pending', attempts, claimed_by from queue) d
  join events e on e.number = d.event_number)`;
