// Draws the diagrams of docs/images as SVG, with the colours of the console, light and dark.

const style = `
  svg { --paper: #fbfbfa; --raised: #fff; --ink: #1c2328; --soft: #55626b; --line: #d5dadd; --accent: #1d5f8a; --tint: #eaf2f7; }
  @media (prefers-color-scheme: dark) {
    svg { --paper: #14181b; --raised: #1c2226; --ink: #e6eaed; --soft: #a3afb7; --line: #37424a; --accent: #7fbfe8; --tint: #1b2a34; }
  }
  text { font: 14px system-ui, sans-serif; fill: var(--ink); }
  .title { font-weight: 600; }
  .soft { fill: var(--soft); font-size: 12.5px; }
  .paper { fill: var(--paper); }
  .box { fill: var(--raised); stroke: var(--line); }
  .frame { fill: var(--tint); stroke: var(--accent); }
  .group { fill: none; stroke: var(--accent); stroke-dasharray: 4 4; }
  .names { font-size: 13px; }
  .arrow { fill: none; stroke: var(--accent); stroke-width: 1.5; }
  .head { fill: var(--accent); }`;

export type Rect = {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
};

const escapeXml = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');

export function text(x: number, y: number, content: string, classes = '', anchor = 'start'): string {
  const attributes = [
    ...(classes === '' ? [] : [` class="${classes}"`]),
    ...(anchor === 'start' ? [] : [` text-anchor="${anchor}"`]),
  ];
  return `<text x="${x}" y="${y}"${attributes.join('')}>${escapeXml(content)}</text>`;
}

export function rect({ x, y, width, height }: Rect, classes: string): string {
  return `<rect class="${classes}" x="${x}" y="${y}" width="${width}" height="${height}" rx="6"/>`;
}

/** An arrow along the points, of which each pair is connected by a horizontal or vertical line. */
export function arrow(...points: readonly (readonly [number, number])[]): string {
  const path = points.map(([x, y], index) => `${index === 0 ? 'M' : 'L'}${x} ${y}`).join('');
  return `<path class="arrow" d="${path}" marker-end="url(#head)"/>`;
}

export function drawing(width: number, height: number, label: string, parts: readonly string[]): string {
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${escapeXml(label)}">`,
    `<style>${style}\n</style>`,
    '<marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto"><path class="head" d="M0 0L8 4L0 8z"/></marker>',
    `<rect class="paper" width="${width}" height="${height}"/>`,
    ...parts,
    '</svg>',
    '',
  ].join('\n');
}
