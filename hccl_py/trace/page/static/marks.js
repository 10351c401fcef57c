/** Marks on the lanes: critical path, tasks found, findings, selection, arrows, cursor. */

import { arrowsOf } from './arrows.js';
import { firstAbove, nextAbove } from './scene.js';
import { nameOf } from './describe.js';

export function drawMarks(lanes, context, rows) {
  const { state } = lanes;
  for (const row of rows) drawFound(lanes, context, row);
  drawFindings(lanes, context, rows);
  if (state.critical) state.scenes.forEach((scene) => drawCritical(lanes, context, scene, rows));
  drawSelection(lanes, context, rows);
  drawArrows(lanes, context);
  drawCursor(lanes, context);
}

/** The place of a bar on the screen; null where its row is not shown. */
export function boxOf(lanes, scene, bar) {
  const row = lanes.state.rows.showing(scene, scene.bars.lane[bar]);
  if (!row) return null;
  const x0 = lanes.x(scene.bars.start_us[bar] + scene.shift);
  const x1 = lanes.x(scene.bars.end_us[bar] + scene.shift);
  return { x: x0, y: lanes.top(row), width: x1 - x0, height: row.height, row };
}

function drawFound(lanes, context, row) {
  const { state } = lanes;
  if (!state.found || row.kind !== 'lane' || state.found.scene !== row.scene) return;
  const { scene, lane } = row;
  const bars = state.found.ascending;
  const { start_us, end_us } = scene.bars;
  const stop = firstAbove(bars, scene.laneStop[lane] - 1, 0, bars.length);
  let k = firstAbove(bars, scene.firstAfter(lane, state.view.from - scene.shift) - 1, 0, stop);
  const y = lanes.top(row);
  context.strokeStyle = context.fillStyle = state.theme.colours.found;
  context.lineWidth = 1.5;
  while (k < stop) {
    const bar = bars[k];
    const x0 = lanes.x(start_us[bar] + scene.shift);
    if (x0 > lanes.width) break;
    const x1 = lanes.x(end_us[bar] + scene.shift);
    if (x1 - x0 > 4) context.strokeRect(x0 + 0.5, y + 1.5, x1 - x0 - 2, row.height - 3);
    else context.fillRect(x0 - 1, y, Math.max(3, x1 - x0), 5);
    k++;
    if (x1 - x0 < 1) {
      const next = scene.firstAfter(lane, lanes.time(x0 + 1) - scene.shift);
      k = nextAbove(bars, next - 1, k, stop);
    }
  }
}

/** A flag at the task that each finding is about. */
function drawFindings(lanes, context, rows) {
  const { colours } = lanes.state.theme;
  for (const scene of lanes.state.scenes) {
    for (const { bars, severity } of scene.findings) {
      const box = bars.length ? boxOf(lanes, scene, bars[0]) : null;
      if (!box || box.x < -8 || box.x > lanes.width || !rows.includes(box.row)) continue;
      context.fillStyle = severity === 'error' ? colours.stuck : colours.post;
      context.beginPath();
      context.moveTo(box.x - 1, box.y);
      context.lineTo(box.x + 8, box.y + 4);
      context.lineTo(box.x - 1, box.y + 8);
      context.fill();
    }
  }
}

function drawCritical(lanes, context, scene, rows) {
  const { bar, begin_us, end_us } = scene.critical;
  if (!bar.length) return;
  const { state } = lanes;
  const shown = new Map(rows.map((row) => [rowKey(row), row]));
  context.fillStyle = state.theme.colours.critical;
  let before = null;
  let k = firstAbove(end_us, state.view.from - scene.shift, 0, bar.length);
  while (k < bar.length) {
    const x0 = lanes.x(begin_us[k] + scene.shift);
    if (x0 > lanes.width) break;
    const x1 = lanes.x(end_us[k] + scene.shift);
    const row = state.rows.showing(scene, scene.bars.lane[bar[k]]);
    const here = row && shown.get(rowKey(row));
    if (here) {
      const y = lanes.top(here) + here.height - 4;
      context.fillRect(x0, y, Math.max(1, x1 - x0), 3);
      if (before && before.y !== y && x0 > 0) {
        context.fillRect(x0 - 0.75, Math.min(before.y, y), 1.5, Math.abs(y - before.y) + 3);
      }
      before = { y };
    } else if (row) {
      before = { y: lanes.top(row) + row.height - 4 };
    }
    k++;
    if (x1 - x0 < 0.5) k = nextAbove(end_us, lanes.time(x0 + 0.5) - scene.shift, k, bar.length);
  }
}

function rowKey(row) {
  return `${row.scene.number}:${row.k}:${row.lane}`;
}

function drawSelection(lanes, context, rows) {
  const { selected, theme } = lanes.state;
  if (!selected) return;
  const box = boxOf(lanes, selected.scene, selected.bar);
  if (!box || !rows.includes(box.row)) return;
  context.strokeStyle = theme.colours.accent;
  context.lineWidth = 2;
  const x = Math.max(box.x, -4) - 1;
  const right = Math.min(box.x + box.width, lanes.width + 4) + 1;
  context.strokeRect(x, box.y + 1, Math.max(5, right - x), box.height - 2);
}

function drawArrows(lanes, context) {
  const { state } = lanes;
  const { colours } = state.theme;
  const found = arrowsOf(state);
  if (!found.length) return;
  const { scene } = state.selected;
  context.lineWidth = 1.5;
  for (const { post, wait, steps } of found) {
    const from = boxOf(lanes, scene, post);
    const to = boxOf(lanes, scene, wait);
    context.strokeStyle = context.fillStyle = colours.accent;
    context.globalAlpha = Math.max(0.35, 1 - steps * 0.12);
    const x0 = lanes.x(scene.bars.end_us[post] + scene.shift);
    const x1 = lanes.x(scene.bars.end_us[wait] + scene.shift);
    if (from && to) {
      drawArrow(context, x0, from.y + from.height / 2, x1, to.y + to.height / 2);
    } else if (from) {
      drawStub(context, x0, from.y + from.height / 2, 1, nameOf(scene, wait), colours, lanes.width);
    } else if (to) {
      drawStub(context, x1, to.y + to.height / 2, -1, nameOf(scene, post), colours, lanes.width);
    }
    context.globalAlpha = 1;
  }
}

function drawArrow(context, x0, y0, x1, y1) {
  const bend = Math.max(18, Math.min(80, Math.abs(x1 - x0) / 2));
  context.beginPath();
  context.arc(x0, y0, 2.5, 0, 7);
  context.fill();
  context.beginPath();
  context.moveTo(x0, y0);
  const inset = x1 - 7;
  context.bezierCurveTo(x0 + bend, y0, inset - bend, y1, inset, y1);
  context.stroke();
  context.beginPath();
  context.moveTo(x1, y1);
  context.lineTo(x1 - 8, y1 - 4);
  context.lineTo(x1 - 8, y1 + 4);
  context.fill();
}

/** An arrow from or to a task whose row is hidden: it says which task that is. */
function drawStub(context, x, y, towards, name, colours, right) {
  const arrow = towards > 0 ? `→ ${name}` : `${name} →`;
  const width = context.measureText(arrow).width + 8;
  const beside = towards > 0 ? x + 4 : x - width - 4;
  const left = Math.max(2, Math.min(beside, right - width - 2));
  context.beginPath();
  context.roundRect(left, y - 8, width, 16, 4);
  context.fill();
  context.fillStyle = colours.background;
  context.fillText(arrow, left + 4, y + 0.5);
}

function drawCursor(lanes, context) {
  const { state } = lanes;
  const x = lanes.x(state.cursor);
  if (x < 0 || x > lanes.width) return;
  context.fillStyle = state.theme.colours.cursor;
  context.fillRect(Math.round(x), 0, 1, lanes.height);
}
