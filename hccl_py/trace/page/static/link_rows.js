/** Rows of links: how much of its capacity a link uses, as a curve over time. */

import { formatBytes, formatShare, formatTime } from './format.js';
import { t } from './words.js';

/** The number of equal spans of time for which a link's load is given. */
function spansOf(links) {
  return links.load.length / links.share.length;
}

export function drawLink(lanes, context, row, top) {
  const { scene, link } = row;
  const { load } = scene.links;
  const { colours } = lanes.state.theme;
  const spans = spansOf(scene.links);
  const each = scene.total / spans;
  const room = row.height - 3;
  const bottom = top + row.height - 1;
  context.fillStyle = colours.faint;
  context.fillRect(0, bottom, lanes.width, 1);
  const first = Math.max(0, Math.floor((lanes.state.view.from - scene.shift) / each));
  for (let span = first; span < spans; span++) {
    const x0 = Math.max(0, Math.round(lanes.x(span * each + scene.shift)));
    const x1 = Math.min(lanes.width, Math.round(lanes.x((span + 1) * each + scene.shift)));
    if (x0 > lanes.width) break;
    const share = load[link * spans + span];
    if (!(share > 0)) continue;
    // Flows that are timed alone can ask for more than there is.
    context.fillStyle = share > 1.005 ? colours.critical : colours.transfer;
    const height = Math.max(1, Math.min(1, share) * room);
    context.fillRect(x0, bottom - height, Math.max(1, x1 - x0), height);
  }
}

/** The tooltip's text about the link at a place of the canvas; null where there is none. */
export function linkAt(lanes, { x, y }) {
  const row = lanes.rowAt(y);
  if (row?.kind !== 'link') return null;
  const { scene, link } = row;
  const spans = spansOf(scene.links);
  const at = lanes.time(x) - scene.shift;
  const span = Math.floor((at / scene.total) * spans);
  if (span < 0 || span >= spans) return null;
  const { bytes, gbps } = scene.links;
  const rate = Number.isFinite(gbps[link]) ? gbps[link].toPrecision(3) : '∞';
  const share = formatShare(scene.links.load[link * spans + span]);
  return [
    scene.links.names[link].join(' → '),
    `${t('links_row')}: ${share} · ${formatTime(at, lanes.state.view.span)}`,
    t('link_carries', { bytes: formatBytes(bytes[link]), rate }),
  ];
}
