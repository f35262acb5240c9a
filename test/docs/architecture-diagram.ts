// The picture of the whole: clients, the parts of the process, and what it uses outside.
import { type Rect, arrow, drawing, rect, text } from './svg.ts';

type Box = Rect & { readonly title: string; readonly lines: readonly string[] };

type Column = Pick<Rect, 'x' | 'width'>;

/** Columns from the left to the right. */
const clients = { x: 20, width: 170 };
const protocols = { x: 260, width: 200 };
const services = { x: 530, width: 220 };
const outside = { x: 830, width: 190 };
const inside = { x: protocols.x, width: services.x + services.width - protocols.x };

const box = (column: Column, y: number, title: string, ...lines: readonly string[]): Box => ({
  ...column,
  y,
  height: 70,
  title,
  lines,
});

const boxes = {
  scripts: box(clients, 92, 'Scripts', 'curl, CI,', 'generated clients'),
  browser: box(clients, 192, 'Browser', 'every address', 'is a page'),
  toolkits: box(clients, 292, 'SOAP toolkits', 'generated', 'from the WSDL'),

  rest: box(protocols, 92, 'REST API', 'form fields in, JSON out', 'src/rest'),
  pages: box(protocols, 192, 'Pages', 'the same tree as HTML', 'src/console'),
  soap: box(protocols, 292, 'SOAP endpoint', 'seven operations', 'src/soap'),

  tokens: box(services, 72, 'Tokens and users', 'sign-in, roles, limits', 'src/auth'),
  catalog: box(services, 152, 'Catalog', 'folders and services', 'src/catalog'),
  webhooks: box(services, 232, 'Webhook worker', 'events, retries, signatures', 'src/webhooks'),
  upgrades: box(services, 312, 'Job runner', 'plan, steps, executor', 'src/upgrades'),
  store: box(
    inside,
    432,
    'Store',
    'in memory; with PostgreSQL, a copy that follows the database',
    'src/store',
  ),

  receivers: box(outside, 232, 'Receivers', 'HTTP servers that get', 'signed requests'),
  deployment: box(outside, 312, 'Deployment', 'simulated, or workloads', 'of a Kubernetes namespace'),
  database: box(outside, 432, 'PostgreSQL', 'optional; shared by', 'several processes'),
};

const middleOf = ({ y, height }: Rect) => y + height / 2;

/** An arrow to the right. */
function across(from: Rect, to: Rect): string {
  return arrow([from.x + from.width, middleOf(from)], [to.x, middleOf(from)]);
}

function drawBox({ title, lines, ...shape }: Box): string[] {
  const center = shape.x + shape.width / 2;
  return [
    rect(shape, 'box'),
    text(center, shape.y + 22, title, 'title', 'middle'),
    ...lines.map((line, index) => text(center, shape.y + 42 + 17 * index, line, 'soft', 'middle')),
  ];
}

export function drawArchitecture(): string {
  const { rest, pages, soap, webhooks, upgrades, store } = boxes;
  const process = { x: 232, y: 20, width: 546, height: 502 };
  const group = { x: 516, y: 58, width: 248, height: 338 };
  const middle = group.x + group.width / 2;
  return drawing(1040, 542, 'Clients, the parts of Steward, and what it uses outside', [
    rect(process, 'frame'),
    text(protocols.x, 48, 'One Node process, one Fastify server', 'title'),
    rect(group, 'group'),
    ...Object.values(boxes).flatMap(drawBox),
    across(boxes.scripts, rest),
    across(boxes.browser, pages),
    across(boxes.toolkits, soap),
    ...[rest, pages, soap].map((protocol) => across(protocol, group)),
    arrow([middle, group.y + group.height], [middle, store.y]),
    across(webhooks, boxes.receivers),
    across(upgrades, boxes.deployment),
    across(store, boxes.database),
  ]);
}
