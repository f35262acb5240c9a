// Every environment variable with its description and default, and .env.example, which is generated from them.
import * as z from 'zod';
import { variableGroups } from '../../src/config/variables.ts';

export type VariableGroup = {
  readonly title: string;
  readonly variables: readonly {
    readonly name: string;
    readonly description: string;
    /** Undefined for a variable that is absent by default. */
    readonly defaultValue: string | undefined;
  }[];
};

export const variables: readonly VariableGroup[] = Object.entries(variableGroups).map(([title, group]) => ({
  title,
  variables: Object.entries(group as Record<string, z.ZodType>).map(([name, schema]) => {
    const value: unknown = schema instanceof z.ZodDefault ? schema.def.defaultValue : undefined;
    const isPlain = typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
    return {
      name,
      description: schema.description ?? '',
      defaultValue: isPlain ? String(value) : undefined,
    };
  }),
}));

export const variableNames = variables.flatMap((group) => group.variables.map(({ name }) => name));

/** The groups that only tests need. */
const forTests = ['Simulated upgrades', 'Test control'];

/** The content of .env.example: the variables of a server, commented out, in short, with their defaults. */
export function formatEnvExample(): string {
  const header = [
    '# The variables of a server, with their defaults. Copy this file to .env and change what you need. A variable that is absent or',
    '# blank has its default. docs/reference/configuration.md has more on each, and the variables for tests.',
    '#',
    '# Generated from src/config/ by `npm run env-example`.',
  ];
  const groups = variables.filter(({ title }) => !forTests.includes(title));
  const lines = groups.flatMap((group) => [
    '',
    `## ${group.title}`,
    ...group.variables.flatMap(({ name, description, defaultValue = '' }) => [
      ...wrapWords(inShort(description), 118).map((line) => `# ${line}`),
      `# ${name}=${defaultValue}`,
    ]),
  ]);
  return `${[...header, ...lines].join('\n')}\n`;
}

/** The first sentence, and the one with the default. */
function inShort(description: string): string {
  const [first, ...others] = description.split(/(?<=\.) (?=[A-Z])/);
  return [first, ...others.filter((sentence) => sentence.startsWith('Default: '))].join(' ');
}

function wrapWords(text: string, width: number): string[] {
  const lines = [''];
  for (const word of text.split(' ')) {
    const last = lines[lines.length - 1] ?? '';
    if (last === '') lines[lines.length - 1] = word;
    else if (last.length + 1 + word.length <= width) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}
