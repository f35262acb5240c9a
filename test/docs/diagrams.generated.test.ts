// The diagrams of docs/images are those that the code draws. `npm run docs` draws them anew.
import { expect, it } from 'vitest';
import { drawArchitecture } from './architecture-diagram.ts';
import { drawLayers } from './layers-diagram.ts';

it('docs/images/architecture.svg is up to date', async () => {
  await expect(drawArchitecture()).toMatchFileSnapshot('../../docs/images/architecture.svg');
});

it('docs/images/layers.svg shows the layers of the code', async () => {
  await expect(drawLayers()).toMatchFileSnapshot('../../docs/images/layers.svg');
});
