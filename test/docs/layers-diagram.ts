// The picture of the layers, from the folders of src.
import { posix } from 'node:path';
import { type Layer, layerOf, layers, sources } from '../kit/layers.ts';
import { arrow, drawing, rect, text } from './svg.ts';

const purposes: Readonly<Record<Layer, readonly string[]>> = {
  process: ['reads the environment,', 'builds and connects the rest'],
  edges: ['what a feature offers:', 'REST, SOAP, pages'],
  protocols: ['HTTP, forms, console, XML;', 'import no feature'],
  features: ['rules, workers, ports and', 'what they store'],
  store: ['transactions, the copy in', 'memory, the database'],
  lib: ['errors, clock, small tools'],
};

const width = 1040;
const [left, nameWidth, folderWidth] = [20, 230, 110];
const lineHeight = 21;
const padding = 16;
const gap = 26;
/** About the room for the names of files. */
const maxCharacters = 100;

const folderOf = (name: string) => name.split('/').slice(0, -1).join('/');
const stemOf = (name: string) => posix.basename(name, '.ts');

/** A folder whose files are all in the layer stands for them. */
function namesIn(layer: Layer): Map<string, string[]> {
  const isWhole = (folder: string) =>
    sources.every((name) => !name.startsWith(`${folder}/`) || layerOf(name) === layer);
  const rows = new Map<string, string[]>();
  for (const name of sources.filter((source) => layerOf(source) === layer).sort()) {
    const [top = '', ...inner] = folderOf(name)
      .split('/')
      .filter((part) => part !== '');
    const folders = [top, ...inner].map((_part, index, all) => all.slice(0, index + 1).join('/'));
    const whole = folders.find((folder) => folder !== '' && isWhole(folder));
    const shown = whole === undefined ? stemOf(name) : `${whole.slice(top.length + 1)}/`;
    const path = whole === undefined ? [...inner, shown].join('/') : shown;
    const row = rows.get(top) ?? [];
    if (!row.includes(path)) rows.set(top, [...row, path]);
  }
  return new Map([...rows].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Breaks a list into lines. */
function wrap(names: readonly string[]): string[] {
  const lines: string[] = [];
  for (const name of names) {
    const longer = lines.length === 0 ? name : `${lines.at(-1)} · ${name}`;
    if (lines.length > 0 && longer.length <= maxCharacters) lines[lines.length - 1] = longer;
    else lines.push(name);
  }
  return lines;
}

function drawLayer(layer: Layer, y: number): { parts: string[]; height: number } {
  const lines = [...namesIn(layer)].flatMap(([folder, names]) => {
    // A folder that is wholly in the layer has no names of files.
    const isWhole = names.length === 1 && names[0] === '/';
    const heading = folder === '' ? 'src/' : `${folder}/`;
    return wrap(isWhole ? ['all files'] : names).map((line, index) => ({
      heading: index === 0 ? heading : '',
      line,
    }));
  });
  const height = Math.max(lines.length, 1 + purposes[layer].length) * lineHeight + 2 * padding - 6;
  const baseline = (index: number) => y + padding + 12 + index * lineHeight;
  const parts = [
    rect({ x: left, y, width: width - 2 * left, height }, 'box'),
    text(left + padding, baseline(0), layer, 'title'),
    ...purposes[layer].map((line, index) => text(left + padding, baseline(index + 1), line, 'soft')),
    ...lines.flatMap(({ heading, line }, index) => [
      ...(heading === '' ? [] : [text(left + nameWidth, baseline(index), heading, 'soft')]),
      text(left + nameWidth + folderWidth, baseline(index), line, 'names'),
    ]),
  ];
  return { parts, height };
}

export function drawLayers(): string {
  const parts: string[] = [];
  let y = 20;
  for (const layer of [...layers].reverse()) {
    if (y > 20) {
      parts.push(arrow([width / 2, y - gap], [width / 2, y]));
      parts.push(text(width / 2 + 12, y - gap / 2 + 4, 'imports', 'soft'));
    }
    const drawn = drawLayer(layer, y);
    parts.push(...drawn.parts);
    y += drawn.height + gap;
  }
  return drawing(width, y - gap + 20, 'The layers of the code: imports point downwards only', parts);
}
