/** The phase at a place of an unfolded rank's head row. */

import { firstAbove } from './scene.js';
import { formatTime } from './format.js';
import { phaseLane, phaseName } from './lanes.js';

export function phaseAt(lanes, { x, y }) {
  const row = lanes.rowAt(y);
  if (row?.kind !== 'head' || lanes.state.rows.isFolded(row.scene, row.k)) return null;
  const { scene, k } = row;
  const lane = phaseLane(scene, k);
  if (lane < 0) return null;
  const { start_us, end_us, label, round } = scene.phases;
  const phases = scene.phasesOfLane[lane];
  const at = lanes.time(x) - scene.shift;
  const p = phases[firstAbove(phases.map((q) => end_us[q]), at, 0, phases.length)];
  if (p === undefined || start_us[p] > at) return null;
  const time = `${formatTime(start_us[p])} – ${formatTime(end_us[p])}`;
  return [phaseName(scene, label[p], round[p]), `${formatTime(end_us[p] - start_us[p])} · ${time}`];
}
