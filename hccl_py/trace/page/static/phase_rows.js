/** Phases on the head rows of ranks: drawn there, and what is said of them. */

import { firstAbove } from './scene.js';
import { formatTime } from './format.js';
import { textAt } from './describe.js';

/** The phases of an unfolded rank's lane that has most of them, by name. */
export function drawPhases(lanes, context, row, top) {
  const { scene, k } = row;
  const { colours } = lanes.state.theme;
  const { start_us, end_us, label, round } = scene.phases;
  const lane = phaseLane(scene, k);
  if (lane < 0) return;
  const phases = scene.phasesOfLane[lane];
  const ends = scene.phaseEnds[lane];
  const from = lanes.state.view.from - scene.shift;
  let last = -1;
  for (let i = firstAbove(ends, from, 0, ends.length); i < ends.length; i++) {
    const p = phases[i];
    const x0 = Math.max(lanes.x(start_us[p] + scene.shift), -1);
    const x1 = Math.min(lanes.x(end_us[p] + scene.shift), lanes.width + 1);
    if (x0 > lanes.width) break;
    if (x1 - last < 1) continue;
    last = x1;
    context.fillStyle = i % 2 ? colours['phase-a'] : colours['phase-b'];
    context.fillRect(x0, top + 4, Math.max(1, x1 - x0 - 1), row.height - 7);
    const name = phaseName(scene, label[p], round[p]);
    const room = x1 - x0 - 8;
    if (room > 24) {
      context.fillStyle = colours.muted;
      context.fillText(lanes.fitText(context, name, room), x0 + 4, top + row.height / 2 + 0.5);
    }
  }
}

/** The lane of a rank whose phases tell most; -1 where no task has a label. */
function phaseLane(scene, k) {
  let best = -1;
  let most = 0;
  for (const lane of scene.lanesOf[k]) {
    const named = scene.phasesOfLane[lane].length;
    if (named > most) {
      most = named;
      best = lane;
    }
  }
  return best;
}

/** `round 2 · reduce-scatter`. */
export function phaseName(scene, label, round) {
  const name = textAt(scene.labels, label);
  return scene.header.rounds > 1 && round >= 0 ? `${round + 1} · ${name}` : name;
}

/** The tooltip's text about the phase at a place of the canvas; null where there is none. */
export function phaseAt(lanes, { x, y }) {
  const row = lanes.rowAt(y);
  if (row?.kind !== 'head' || lanes.state.rows.isFolded(row.scene, row.k)) return null;
  const { scene, k } = row;
  const lane = phaseLane(scene, k);
  if (lane < 0) return null;
  const { start_us, end_us, label, round } = scene.phases;
  const ends = scene.phaseEnds[lane];
  const at = lanes.time(x) - scene.shift;
  const p = scene.phasesOfLane[lane][firstAbove(ends, at, 0, ends.length)];
  if (p === undefined || start_us[p] > at) return null;
  const time = `${formatTime(start_us[p])} – ${formatTime(end_us[p])}`;
  return [phaseName(scene, label[p], round[p]), `${formatTime(end_us[p] - start_us[p])} · ${time}`];
}
