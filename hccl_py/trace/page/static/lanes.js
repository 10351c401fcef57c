/** The canvas of lanes: rows of bars, and what is marked on them. */

import { CLASSES, POST, STUCK, SUMS, TIMED, WAIT, firstAbove } from './scene.js';
import { drawLink } from './link_rows.js';
import { drawMarks } from './marks.js';
import { drawPhases } from './phase_rows.js';
import { fitted } from './dom.js';
import { formsOf } from './describe.js';
import { mostOf, shares, walkLane } from './density.js';
import { niceStep } from './format.js';

const FONT = '11px system-ui, "Segoe UI", Roboto, "Noto Sans", "Noto Sans CJK SC", sans-serif';
const SUMMARY_CELL = 2;
/** Waits last: work is drawn over them. */
const STACK = [1, 2, 0, 3, 5];

export class LaneCanvas {
  constructor(state, canvas) {
    this.state = state;
    this.canvas = canvas;
    this.texts = new Map();
    this.width = 1;
    this.height = 1;
    /** Milliseconds that the last picture took. */
    this.lastDraw = 0;
    this.draws = 0;
  }

  get scale() {
    return this.width / this.state.view.span;
  }

  x(at) {
    return (at - this.state.view.from) * this.scale;
  }

  time(x) {
    return this.state.view.from + x / this.scale;
  }

  /** The place of a row on the screen. */
  top(row) {
    const { rows, scroll } = this.state;
    return row.pinned ? row.y : rows.pinnedHeight + row.y - scroll;
  }

  /** Rows that are on the screen, the pinned ones first. */
  visible() {
    const { rows, scroll } = this.state;
    const room = this.height - rows.pinnedHeight;
    const free = rows.rows;
    let low = 0;
    let high = free.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (free[middle].y + free[middle].height <= scroll) low = middle + 1;
      else high = middle;
    }
    let stop = low;
    while (stop < free.length && free[stop].y < scroll + room) stop++;
    return [...rows.pinnedRows, ...free.slice(low, stop)];
  }

  rowAt(y) {
    return this.visible().find((row) => {
      const top = this.top(row);
      const isCovered = !row.pinned && y < this.state.rows.pinnedHeight;
      return !isCovered && y >= top && y < top + row.height;
    });
  }

  draw() {
    const began = performance.now();
    const { state } = this;
    const context = fitted(this.canvas, this.width, this.height);
    const colours = state.theme.colours;
    context.fillStyle = colours.background;
    context.fillRect(0, 0, this.width, this.height);
    context.font = FONT;
    context.textBaseline = 'middle';
    this.#drawGrid(context);
    const rows = this.visible();
    const free = rows.filter((row) => !row.pinned);
    this.#clipped(context, state.rows.pinnedHeight, this.height, () => {
      free.forEach((row) => this.#drawRow(context, row));
      drawMarks(this, context, free);
    });
    if (state.rows.pinnedHeight) {
      this.#clipped(context, 0, state.rows.pinnedHeight, () => {
        const pinned = rows.filter((row) => row.pinned);
        pinned.forEach((row) => this.#drawRow(context, row));
        drawMarks(this, context, pinned);
      });
      context.fillStyle = colours.accent;
      context.fillRect(0, state.rows.pinnedHeight - 1, this.width, 1);
    }
    this.lastDraw = performance.now() - began;
    this.draws++;
  }

  #clipped(context, top, bottom, draw) {
    context.save();
    context.beginPath();
    context.rect(0, top, this.width, bottom - top);
    context.clip();
    draw();
    context.restore();
  }

  #drawGrid(context) {
    const { view, theme } = this.state;
    const step = niceStep(view.span, this.width / 110);
    context.fillStyle = theme.colours.faint;
    for (let k = Math.ceil(view.from / step); k * step <= view.to; k++) {
      context.fillRect(Math.round(this.x(k * step)), 0, 1, this.height);
    }
  }

  #drawRow(context, row) {
    const top = this.top(row);
    const { colours } = this.state.theme;
    if (row.kind === 'head') {
      context.fillStyle = colours.panel;
      context.fillRect(0, top, this.width, row.height);
      context.fillStyle = colours.line;
      context.fillRect(0, top, this.width, 1);
      if (this.state.rows.isFolded(row.scene, row.k)) this.#drawSummary(context, row, top);
      else drawPhases(this, context, row, top);
    } else if (row.kind === 'links') {
      context.fillStyle = colours.panel;
      context.fillRect(0, top, this.width, row.height);
      context.fillStyle = colours.line;
      context.fillRect(0, top, this.width, 1);
    } else if (row.kind === 'link') {
      drawLink(this, context, row, top);
    } else if (row.scene.connections.has(row.lane)) {
      this.#drawConnections(context, row, top);
    } else {
      this.#drawLane(context, row, top);
    }
  }

  #drawLane(context, row, top) {
    const { scene, lane } = row;
    const { colours } = this.state.theme;
    const y = top + 2;
    const height = row.height - 4;
    const posts = [];
    walkLane(
      scene,
      lane,
      this.state.view,
      this.width,
      (bar, x0, x1) => {
        this.#drawBar(context, scene, bar, x0, x1, y, height);
      },
      (x0, x1, first, stop) => {
        const s = mostOf(scene, first, stop);
        if (
          s >= 0 &&
          !(s === TIMED.indexOf(WAIT) && stop - first === 1 && this.#isShort(scene, first))
        ) {
          context.fillStyle = colours[CLASSES[TIMED[s]]];
          context.fillRect(x0, y, x1 - x0, height);
        } else {
          posts.push(x0, first, stop);
        }
      },
    );
    this.#drawPosts(context, scene, posts, y, height);
  }

  #isShort(scene, bar) {
    return (scene.bars.end_us[bar] - scene.bars.start_us[bar]) * this.scale < 0.5;
  }

  /** Posts take no time: ticks, short ones where they stand so close that they would hide the rest. */
  #drawPosts(context, scene, posts, y, height) {
    const { colours } = this.state.theme;
    const isDense = posts.length / 3 > this.width / 16;
    for (let k = 0; k < posts.length; k += 3) {
      const [x, first, stop] = posts.slice(k, k + 3);
      let hasPost = false;
      for (let bar = first; bar < Math.min(stop, first + 16); bar++) {
        hasPost ||= scene.classOf[bar] === POST;
      }
      context.fillStyle = hasPost ? colours.post : colours['wait-line'];
      if (hasPost) context.fillRect(x, y, isDense ? 1 : 2, isDense ? 4 : height);
      else context.fillRect(x, y + 3, 1, height - 6);
    }
  }

  #drawBar(context, scene, bar, x0, x1, y, height) {
    const { theme } = this.state;
    const left = Math.max(x0, -1);
    const width = Math.max(1, Math.min(x1, this.width + 1) - left - (x1 - x0 > 4 ? 1 : 0));
    const c = scene.classOf[bar];
    if (c === WAIT) {
      context.fillStyle = width > 12 ? theme.hatch : theme.colours.wait;
      context.fillRect(left, y + 2, width, height - 4);
    } else if (c === STUCK) {
      context.fillStyle = theme.stuckHatch;
      context.fillRect(left, y, width, height);
    } else {
      context.fillStyle = theme.colours[CLASSES[c]];
      context.fillRect(left, y, width, height);
    }
    if (width > 26) this.#drawText(context, scene, bar, left, width, y + height / 2 + 0.5);
  }

  #drawText(context, scene, bar, left, width, middle) {
    const { colours } = this.state.theme;
    const c = scene.classOf[bar];
    const text = formsOf(scene, bar).find((form) => this.#widthOf(context, form) <= width - 8);
    if (!text) return;
    if (c === WAIT || c === STUCK) {
      const wide = this.#widthOf(context, text);
      context.fillStyle = c === WAIT ? colours.wait : colours.background;
      context.fillRect(left + 2, middle - 6.5, wide + 5, 13);
      context.fillStyle = c === WAIT ? colours['on-wait'] : colours.stuck;
    } else {
      context.fillStyle = colours['on-bar'];
    }
    context.fillText(text, left + 4, middle);
  }

  #widthOf(context, text) {
    let width = this.texts.get(text);
    if (width === undefined) {
      if (this.texts.size > 20000) this.texts.clear();
      width = context.measureText(text).width;
      this.texts.set(text, width);
    }
    return width;
  }

  /** The work of a folded rank's streams together: stacked from the bottom, the mean of them. */
  #drawSummary(context, row, top) {
    const { scene, k } = row;
    const { colours } = this.state.theme;
    const found = shares(scene, scene.lanesOf[k], this.state.view, this.width, SUMMARY_CELL);
    const height = row.height - 5;
    const bottom = top + row.height - 2;
    const cells = found.length / SUMS;
    const lift = new Float32Array(cells);
    context.fillStyle = colours.wait;
    this.#drawRuns(
      context,
      found,
      4,
      () => bottom,
      () => height,
      cells,
    );
    for (const s of STACK) {
      context.fillStyle = colours[CLASSES[TIMED[s]]];
      const high = (cell) =>
        Math.min(Math.round(found[cell * SUMS + s] * height), height - lift[cell]);
      this.#drawRuns(context, found, s, (cell) => bottom - lift[cell], high, cells);
      for (let cell = 0; cell < cells; cell++) lift[cell] += high(cell);
    }
  }

  /** Rectangles for cells with something of class s; equal neighbours become one. */
  #drawRuns(context, found, s, bottomOf, heightOf, cells) {
    let cell = 0;
    while (cell < cells) {
      if (found[cell * SUMS + s] <= 0.002) {
        cell++;
        continue;
      }
      const bottom = bottomOf(cell);
      const height = heightOf(cell);
      const first = cell++;
      while (
        cell < cells &&
        found[cell * SUMS + s] > 0.002 &&
        bottomOf(cell) === bottom &&
        heightOf(cell) === height
      )
        cell++;
      if (height > 0) {
        const x = first * SUMMARY_CELL;
        context.fillRect(x, bottom - height, (cell - first) * SUMMARY_CELL, height);
      }
    }
  }

  /** A text shortened in its middle until it fits; empty where too little of it would be left. */
  fitText(context, text, room) {
    if (this.#widthOf(context, text) <= room) return text;
    // The end of a phase's name often is the number of its step, and worth more than the middle.
    const end = text.slice(-4);
    let length = Math.min(text.length - 4, Math.floor(room / 5));
    while (length > 0 && this.#widthOf(context, `${text.slice(0, length)}…${end}`) > room) length--;
    return length > 0 ? `${text.slice(0, length)}…${end}` : '';
  }

  /** The writes under way on a rank's connections: those that overlap in a row each. */
  #drawConnections(context, row, top) {
    const { scene } = row;
    const { colours } = this.state.theme;
    const connections = scene.connections.get(row.lane);
    const { view } = this.state;
    const each = (row.height - 4) / connections.count;
    const last = new Float64Array(connections.count).fill(-1);
    let k = firstAbove(connections.latest, view.from - scene.shift, 0, connections.bars.length);
    while (k < connections.bars.length) {
      const bar = connections.bars[k];
      const x0 = this.x(connections.starts[k] + scene.shift);
      if (x0 > this.width) break;
      const x1 = this.x(scene.bars.effect_us[bar] + scene.shift);
      const place = connections.rows[k];
      if (x1 >= 0 && x1 > last[place] + 0.5) {
        const y = top + 2 + place * each;
        const left = Math.max(x0, -1);
        const width = Math.max(1, Math.min(x1, this.width + 1) - left - (x1 - x0 > 4 ? 1 : 0));
        context.fillStyle = colours[CLASSES[scene.classOf[bar]]];
        context.globalAlpha = 0.75;
        context.fillRect(left, y, width, each - 1);
        context.globalAlpha = 1;
        last[place] = x1;
        if (width > 30 && each >= 11) {
          this.#drawText(context, scene, bar, left, width, y + each / 2);
        }
      }
      k++;
      // Where many set out within a pixel, the next one that can be seen is found by a search.
      if (x1 - x0 < 0.5)
        k = Math.max(
          k,
          firstAbove(
            connections.starts,
            this.time(x0 + 0.5) - scene.shift,
            k,
            connections.bars.length,
          ),
        );
    }
  }
}
