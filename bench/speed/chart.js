// Draws the rows of bench/speed.js: a bar for each ratio to the limit, and a mark at its bound.

const colours = { paper: '#fbfbf8', ink: '#22272e', faint: '#d5d7db', met: '#3d8b78', missed: '#c0583f' };
const width = 1180;
const left = 450;
const unit = 190;
const longest = 2.4;
const rowHeight = 32;
const barHeight = 18;
const headingHeight = 44;

const escape = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
const at = (ratio) => Number((left + Math.min(ratio, longest) * unit).toFixed(1));
const text = (x, y, content, more = '') => `<text x="${x}" y="${y}"${more}>${escape(content)}</text>`;
const upright = (x, from, to, colour, thickness) =>
  `<path d="M${x} ${from}V${to}" stroke="${colour}" stroke-width="${thickness}"/>`;

function drawRow({ name, ours, ratio, wanted, bound, peer, isMet }, y) {
  const colour = isMet ? colours.met : colours.missed;
  const ofPeer = peer ? `, ${peer.toFixed(1)} × the peer` : '';
  return [
    '<g>',
    `<title>${escape(`${name}: ${ratio.toFixed(2)}, wanted ${wanted}`)}</title>`,
    text(left - 12, y + 14, name, ' text-anchor="end"'),
    `<rect x="${left}" y="${y}" width="${(at(ratio) - left).toFixed(1)}" height="${barHeight}" fill="${colour}"/>`,
    upright(at(bound), y - 4, y + barHeight + 4, colours.ink, 3),
    text(
      Math.max(at(ratio), at(bound)) + 10,
      y + 14,
      `${ratio.toFixed(2)} (${ours}${ofPeer})${isMet ? '' : ' missed'}`,
    ),
    '</g>',
  ];
}

function drawGroup(heading, rows, y) {
  const first = y + headingHeight;
  const end = first + rows.length * rowHeight;
  const grid = [0, 0.5, 1, 1.5, 2].flatMap((ratio) => [
    upright(at(ratio), first - 8, end - 8, colours.faint, 1),
    text(at(ratio), first - 12, String(ratio), ' text-anchor="middle" font-size="11"'),
  ]);
  const bars = rows.flatMap((row, index) => drawRow(row, first + index * rowHeight));
  return { parts: [text(16, y + 14, heading, ' font-weight="bold"'), ...grid, ...bars], end };
}

export function drawChart(rows) {
  const rates = rows.filter(({ isRate }) => isRate);
  const others = rows.filter(({ isRate }) => !isRate);
  const above = drawGroup(
    'Requests per second, against bare Fastify: the bar is to reach its mark',
    rates,
    20,
  );
  const below = drawGroup(
    'Start and memory, against bare Fastify, or 250 MB: the bar is to end before its mark',
    others,
    above.end + 16,
  );
  const height = below.end + 8;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}"`,
    ` role="img" aria-label="Ratios of the server to its limits" font-family="system-ui, sans-serif" font-size="14"`,
    ` fill="${colours.ink}">`,
    `<rect width="${width}" height="${height}" fill="${colours.paper}"/>`,
    ...above.parts,
    ...below.parts,
    '</svg>',
    '',
  ].join('\n');
}
