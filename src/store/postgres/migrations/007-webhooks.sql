-- Webhooks get custom headers, which are encrypted like their keys, and the warning about their failures.
update state set value = (value::jsonb || '{"headers":"plain:[]","warning":null}')::json
where kind = 'webhooks' and value is not null;
