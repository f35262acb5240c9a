// Renders docs/reference/configuration.md from the schema of the environment variables and the fields of the
// webhook settings.
import { type ConfigError, readConfig } from '../../../src/config/config.ts';
import { type Field, type Fields, describeField } from '../../../src/rest/fields.ts';
import type { Resource } from '../../../src/rest/resource.ts';
import { webhookSettings } from '../../../src/webhooks/settings.ts';
import { startServer } from '../../kit/server.ts';
import { type VariableGroup, variables } from '../../kit/variables.ts';
import { code, formatPage, plain, table } from './markdown.ts';

const intro = `
Every environment variable and every stored setting of Steward, with allowed values and defaults: for everyone who starts or operates a server.

Steward reads environment variables, and the file \`.env\` in its working directory. \`.env.example\` is a template for that file. A variable that is absent or blank has its default. Steward checks all variables at start, reports all problems together, and does not start if there is one.
`;

const settingsIntro = `
## Webhook settings

An administrator changes these settings while the server runs, with \`POST {ADMIN_PATH}/services/webhooks/settings\` or on the page of the same address. They are stored, and apply to all webhooks from the next attempt on. See [webhooks in the protocol](../protocol.md#webhooks).
`;

type Variable = VariableGroup['variables'][number];

/** The rule of a variable, taken from the message that refuses a value no rule accepts. */
function allowedIn({ name }: Variable): string {
  const refusal = `${name} must be `;
  const problem = problemsOf({ [name]: '\0' }).find((text) => text.startsWith(refusal));
  if (problem === undefined) return 'text';
  const rule = problem.slice(refusal.length).replace(/\.$/, '').split(';', 1)[0] ?? '';
  return rule
    .replace(/^absent \(memory\) or | or absent$|^one of /g, '')
    .replace(/^an? comma list/, 'a comma-separated list');
}

function problemsOf(env: Record<string, string>): readonly string[] {
  try {
    readConfig(env);
    return [];
  } catch (error) {
    return (error as ConfigError).problems;
  }
}

/** Descriptions say in their last sentence what an absent variable means. */
function splitDefault(description: string): { meaning: string; whenAbsent: string | undefined } {
  const [meaning = '', whenAbsent] = description.split(/ ?\bDefault: /);
  return { meaning, whenAbsent: whenAbsent?.replace(/\.$/, '') };
}

function variableRow(variable: Variable): string[] {
  const { meaning, whenAbsent } = splitDefault(variable.description);
  const { name, defaultValue } = variable;
  const byDefault = defaultValue === undefined ? markUp(whenAbsent ?? 'absent') : code(defaultValue);
  return [code(name), markUp(allowedIn(variable)), byDefault, markUp(meaning)];
}

/**
 * Names of variables become code, pages become links. Each group has its own heading, so that the name of the
 * executor is left out.
 */
function markUp(description: string): string {
  return plain(description.replace(/^(kubernetes|simulated): /, ''))
    .replace(/\{?\b[A-Z]+(_[A-Z]+)+\b\}?(:2)?/g, code)
    .replace(/docs\/([\w/-]+\.md)/g, '[$1](../$1)');
}

function groupPart({ title, variables }: VariableGroup): string {
  return `## ${title}\n\n${table(['Variable', 'Allowed', 'Default', 'Meaning'], variables.map(variableRow))}`;
}

/** The stored settings, as the operation that changes them describes its fields. */
function settingsPart(admin: Resource): string {
  const { services } = admin.resources;
  const fields: Fields = services?.resources.webhooks?.resources.settings?.onPost?.fields ?? {};
  const rows = Object.entries(webhookSettings.initial).map(([name, value]) => {
    const { schema, description } = describeField(fields[name] as Field);
    return [
      code(name),
      `an integer from ${schema.minimum} to ${schema.maximum}`,
      code(String(value)),
      description,
    ];
  });
  return settingsIntro + '\n' + table(['Setting', 'Allowed', 'Default', 'Meaning'], rows);
}

export async function configurationPage(): Promise<string> {
  const server = await startServer();
  const page = await formatPage(
    'Configuration',
    'src/config/ and src/webhooks/settings.ts',
    intro,
    ...variables.map(groupPart),
    settingsPart(server.app.trees.admin),
  );
  await server.close();
  return page;
}
