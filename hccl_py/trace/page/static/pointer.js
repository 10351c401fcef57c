/** Mouse and wheel over the lanes: select, zoom, move, scroll; and the tooltip. */

import { WAIT, firstAbove } from './scene.js';
import { placeOn, tooltip, whileDragged } from './dom.js';
import { linkAt } from './link_rows.js';
import { phaseAt } from './phase_rows.js';
import { shortLines } from './describe.js';

const NEAR = 4;

export class Pointer {
  constructor(state, lanes, scroller, gutter) {
    this.state = state;
    this.lanes = lanes;
    this.scroller = scroller;
    const { canvas } = lanes;
    canvas.addEventListener('pointerdown', (event) => this.#press(event));
    canvas.addEventListener('pointermove', (event) => this.#hover(event));
    canvas.addEventListener('pointerleave', () => this.#hide());
    canvas.addEventListener('dblclick', (event) => this.#open(event));
    canvas.addEventListener('wheel', (event) => this.#wheel(event), { passive: false });
    gutter.addEventListener(
      'wheel',
      (event) => {
        this.scroller.scrollTop += event.deltaY;
      },
      { passive: true },
    );
  }

  #place(event) {
    return placeOn(this.lanes.canvas, event);
  }

  #wheel(event) {
    event.preventDefault();
    this.#hide();
    const { state, lanes } = this;
    if (event.shiftKey && !event.ctrlKey) {
      this.scroller.scrollTop += event.deltaY || event.deltaX;
    } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      state.pan(event.deltaX / lanes.width);
    } else {
      const by = Math.max(-240, Math.min(240, event.deltaY));
      state.zoom(Math.exp(by * 0.0025), lanes.time(this.#place(event).x));
    }
  }

  #press(event) {
    if (event.button !== 0) return;
    this.#hide();
    const { state, lanes } = this;
    const began = this.#place(event);
    const { from } = state.view;
    const top = this.scroller.scrollTop;
    let moved = false;
    whileDragged(
      event,
      (drag) => {
        const now = this.#place(drag);
        if (!moved && Math.abs(now.x - began.x) + Math.abs(now.y - began.y) < NEAR) return;
        moved = true;
        lanes.canvas.style.cursor = 'grabbing';
        state.view.pan(from - state.view.from - (now.x - began.x) / lanes.scale);
        this.scroller.scrollTop = top - (now.y - began.y);
        state.changed('view');
      },
      () => {
        lanes.canvas.style.cursor = '';
        if (!moved) this.#click(began);
      },
    );
  }

  #click(place) {
    const { state } = this;
    const hit = hitAt(this.lanes, place);
    if (hit) state.select(hit.scene, hit.bar, { reveal: false });
    else {
      state.deselect();
      state.moveCursor(Math.min(Math.max(this.lanes.time(place.x), 0), state.view.most));
    }
  }

  #open(event) {
    const { state } = this;
    const place = this.#place(event);
    const row = this.lanes.rowAt(place.y);
    const hit = hitAt(this.lanes, place);
    if (hit) zoomTo(state, hit.scene, hit.bar);
    else if (row?.kind === 'head' || row?.kind === 'links') {
      state.rows.toggleFold(row.scene, row.k);
      state.changed('rows');
    }
  }

  #hover(event) {
    if (event.buttons) return;
    const place = this.#place(event);
    const hit = hitAt(this.lanes, place);
    const lines = hit
      ? shortLines(hit.scene, hit.bar)
      : (phaseAt(this.lanes, place) ?? linkAt(this.lanes, place));
    tooltip(event, lines);
  }

  #hide() {
    tooltip(null, null);
  }
}

/** Zoom so that a task takes a third of the width. */
export function zoomTo(state, scene, bar) {
  const from = scene.bars.start_us[bar] + scene.shift;
  const to = Math.max(scene.bars.end_us[bar], scene.bars.effect_us[bar]) + scene.shift;
  const span = Math.max(to - from, state.view.total * 1e-5, 1e-2);
  state.show(from - span, to + span);
}

/** The task at a place of the canvas, {scene, bar}, or null. */
export function hitAt(lanes, { x, y }) {
  const row = lanes.rowAt(y);
  if (!row || row.kind !== 'lane') return null;
  const { scene, lane } = row;
  const at = lanes.time(x) - scene.shift;
  const near = NEAR / lanes.scale;
  const bar = scene.connections.has(lane)
    ? connectionAt(lanes, row, at, near, y)
    : laneAt(scene, lane, at, near);
  return bar < 0 ? null : { scene, bar };
}

/** The bar under a moment. What takes no time is hit from a little away, if that is nearer than the
 *  edges of what takes some. */
function laneAt(scene, lane, at, near) {
  const { start_us, end_us } = scene.bars;
  const stop = scene.laneStop[lane];
  let best = -1;
  let distance = near;
  for (
    let bar = scene.firstAfter(lane, at - near);
    bar < stop && start_us[bar] <= at + near;
    bar++
  ) {
    const isInside = start_us[bar] <= at && at < end_us[bar];
    const isNarrow = end_us[bar] - start_us[bar] < near;
    const away =
      isInside && !isNarrow
        ? Math.min(near * 0.6, at - start_us[bar], end_us[bar] - at) + near * 0.2
        : Math.max(start_us[bar] - at, at - end_us[bar], 0);
    const weight = scene.classOf[bar] === WAIT && isNarrow ? away + near * 0.1 : away;
    if (weight < distance || (isInside && !isNarrow && best < 0)) {
      best = bar;
      distance = weight;
    }
    if (bar - best > 10000) break;
  }
  return best;
}

function connectionAt(lanes, row, at, near, y) {
  const { scene } = row;
  const connections = scene.connections.get(row.lane);
  const place = Math.floor(((y - lanes.top(row) - 2) / (row.height - 4)) * connections.count);
  for (
    let k = firstAbove(connections.latest, at - near, 0, connections.bars.length);
    k < connections.bars.length;
    k++
  ) {
    if (connections.starts[k] > at + near) break;
    const isHit = scene.bars.effect_us[connections.bars[k]] >= at - near;
    if (isHit && connections.rows[k] === place) return connections.bars[k];
  }
  return -1;
}
