-- Converts the workloads of stored plans: the images move into a list of parts, one for each container.
update plans set steps = (
  select coalesce(json_agg(
    case
      when step -> 'workload' -> 'image' is null then step
      else jsonb_set(step, '{workload}', jsonb_build_object(
        'name', step -> 'workload' -> 'name',
        'component', split_part(step -> 'workload' ->> 'name', '_', 1),
        'parts', jsonb_build_array(jsonb_build_object(
          'container', step -> 'workload' -> 'name',
          'image', step -> 'workload' -> 'image',
          'formerImage', step -> 'workload' -> 'formerImage'))))
    end order by number), '[]'::json)
  from jsonb_array_elements(steps::jsonb) with ordinality as s (step, number)
);
