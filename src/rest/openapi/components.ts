// The components of the OpenAPI document that operations refer to. Equal ones are stored once: a webhook, for
// example, has several addresses.
import type { Json } from '../../lib/json.ts';

type Section = 'parameters' | 'requestBodies' | 'schemas';

export class Components {
  readonly #sections: Record<Section, Record<string, Json>> = {
    parameters: {},
    requestBodies: {},
    schemas: {},
  };

  /** Another component with the same name gets a number. */
  reference(section: Section, name: string, component: Json): { readonly $ref: string } {
    const stored = this.#sections[section];
    const text = JSON.stringify(component);
    let id = name;
    for (let number = 2; stored[id] !== undefined && JSON.stringify(stored[id]) !== text; number += 1)
      id = `${name}${number}`;
    stored[id] = component;
    return { $ref: `#/components/${section}/${id}` };
  }

  in(section: Section): Readonly<Record<string, Json>> {
    return this.#sections[section];
  }
}
