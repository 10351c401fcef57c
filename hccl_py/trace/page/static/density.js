/** The work of a lane in every pixel of a stretch of time, for any number of tasks. */

import { SUMS, firstAbove, nextAbove } from './scene.js';

/**
 * Walk the bars of a lane from left to right: `wide(bar, x0, x1)` for bars that can be seen one by
 * one, `narrow(x0, x1, first, stop)` for runs of bars that share pixels. Calls are bounded by the
 * width in pixels, not with the number of bars: a search passes runs, not a loop over bars.
 */
export function walkLane(scene, lane, view, width, wide, narrow) {
  const { start_us, end_us } = scene.bars;
  const from = view.from - scene.shift;
  const scale = width / (view.to - view.from);
  const stop = scene.laneStop[lane];
  const tolerance = 1e-9;
  let bar = scene.firstAfter(lane, from - tolerance - 2 / scale);
  while (bar < stop) {
    const x0 = (start_us[bar] - from) * scale;
    if (x0 > width) return;
    const x1 = (end_us[bar] - from) * scale;
    if (x1 - x0 >= 2) {
      wide(bar, x0, x1);
      bar++;
      continue;
    }
    const pixel = Math.floor(x0);
    const until = from + (pixel + 1) / scale;
    let after = nextAbove(end_us, until, bar + 1, stop);
    // The bar that reaches over the pixel's edge belongs to it if it is narrow itself.
    if (after < stop && start_us[after] < until && (end_us[after] - start_us[after]) * scale < 2) {
      after++;
    }
    narrow(pixel, pixel + 1, bar, after);
    bar = after;
  }
}

/** The class (index into TIMED) that takes the most time of bars first .. stop - 1; -1: none. */
export function mostOf(scene, first, stop, busyFirst = true) {
  const { sums } = scene;
  const low = first * SUMS;
  const high = stop * SUMS;
  let best = -1;
  let most = 0;
  for (let s = 0; s < SUMS; s++) {
    const time = sums[high + s] - sums[low + s];
    // Waits fill what work leaves: they show where nothing else is.
    const weight = s === 4 && busyFirst ? time * 0.5 : time;
    if (weight > most) {
      most = weight;
      best = s;
    }
  }
  return best;
}

/**
 * Add up what lanes do, by cells of `cell` pixels: shares of time by class, [cells, SUMS].
 * @returns {Float32Array}
 */
export function shares(scene, lanes, view, width, cell) {
  const cells = Math.ceil(width / cell);
  const found = new Float32Array(cells * SUMS);
  const { start_us, end_us } = scene.bars;
  const from = view.from - scene.shift;
  const span = ((view.to - view.from) / width) * cell;
  const { sums, classOf } = scene;
  for (const lane of lanes) {
    if (scene.connections.has(lane)) {
      addConnections(found, scene, scene.connections.get(lane), from, span, cells);
      continue;
    }
    const stop = scene.laneStop[lane];
    let bar = scene.firstAfter(lane, from);
    while (bar < stop) {
      const begin = start_us[bar] - from;
      if (begin >= span * cells) break;
      const end = end_us[bar] - from;
      if (end - begin >= span) {
        addBar(found, timedClass(classOf[bar]), begin / span, end / span, cells);
        bar++;
        continue;
      }
      const k = Math.max(0, Math.floor(begin / span));
      const after = nextAbove(end_us, from + (k + 1) * span, bar + 1, stop);
      for (let s = 0; s < SUMS; s++) {
        found[k * SUMS + s] += (sums[after * SUMS + s] - sums[bar * SUMS + s]) / span;
      }
      bar = after;
    }
  }
  for (let i = 0; i < found.length; i++) found[i] /= Math.max(1, lanes.length);
  return found;
}

/** RDMA writes on connections, from setting out to arriving. */
function addConnections(found, scene, connections, from, span, cells) {
  const { effect_us } = scene.bars;
  let k = firstAbove(connections.latest, from, 0, connections.bars.length);
  for (; k < connections.bars.length && connections.starts[k] - from < span * cells; k++) {
    const bar = connections.bars[k];
    const begin = (connections.starts[k] - from) / span;
    addBar(found, timedClass(scene.classOf[bar]), begin, (effect_us[bar] - from) / span, cells);
  }
}

function timedClass(c) {
  return c === 6 ? 5 : c === 5 ? -1 : c;
}

function addBar(found, s, begin, end, cells) {
  if (s < 0) return;
  const last = Math.min(cells - 1, Math.floor(end));
  for (let k = Math.max(0, Math.floor(begin)); k <= last; k++) {
    found[k * SUMS + s] += Math.min(end, k + 1) - Math.max(begin, k);
  }
}
