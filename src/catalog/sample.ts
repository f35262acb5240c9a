// The catalog of a first start without CATALOG_FILE: 12 services in the root and three folders.
import type { InitialCatalog, ServiceAccess } from './catalog.ts';

export const sampleCatalog: InitialCatalog = {
  folders: [
    { folderName: 'Maps', description: 'Base maps and thematic maps.' },
    { folderName: 'Tools', description: 'Services that compute something.' },
    { folderName: 'Operations', description: 'Services for the operators of the deployment.' },
  ],
  services: [
    sample('/', 'World', 'MapServer', 'Map,Query,Data', 'The world at small scales.'),
    sample(
      '/',
      'Places',
      'GeocodeServer',
      'Geocode,ReverseGeocode,Suggest',
      'Finds places by name and address.',
    ),
    sample('/', 'Geometry', 'GeometryServer', 'Buffer,Project,Simplify', 'Geometric computations.'),
    sample('Maps', 'Boundaries', 'MapServer', 'Map,Query,Data', 'Administrative boundaries.'),
    sample('Maps', 'Boundaries', 'FeatureServer', 'Query,Sync', 'Boundaries as features.', {
      parentType: 'MapServer',
    }),
    sample('Maps', 'Elevation', 'ImageServer', 'Image,Metadata', 'Heights above sea level.'),
    sample('Maps', 'Roads', 'MapServer', 'Map,Query', 'Roads and paths.'),
    sample('Tools', 'Routing', 'NAServer', 'Route,ServiceArea', 'Routes and service areas.'),
    sample('Tools', 'Printing', 'GPServer', 'Execute', 'Maps for printing.'),
    sample('Tools', 'Statistics', 'GPServer', 'Execute,Submit', 'Summary statistics.', {
      access: 'organization',
    }),
    sample('Maps', 'Parcels', 'FeatureServer', 'Query,Update', 'Land parcels.', { access: 'organization' }),
    sample('Operations', 'Diagnostics', 'GPServer', 'Execute', 'Checks of the deployment.', {
      access: 'administrators',
    }),
  ],
};

function sample(
  folderName: string,
  serviceName: string,
  type: string,
  capabilities: string,
  description: string,
  more: { readonly parentType?: string; readonly access?: ServiceAccess } = {},
) {
  const definition = { recycleStartTime: '00:00' };
  return { folderName, serviceName, type, capabilities, description, definition, ...more };
}
