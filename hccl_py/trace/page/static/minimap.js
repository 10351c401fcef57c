/** The overview of all time: how busy the streams are, and what stretch of it is on the screen. */

import { CLASSES, SUMS, TIMED } from './scene.js';
import { fitted, whileDragged } from './dom.js';
import { formatTime } from './format.js';
import { shares } from './density.js';

const HEIGHT = 44;
const CELL = 2;
const MOST_LANES = 256;
const EDGE = 6;

export class Minimap {
  constructor(state, canvas) {
    this.state = state;
    this.canvas = canvas;
    this.width = 1;
    this.busy = null;
    state.on('look', () => {
      this.busy = null;
    });
    canvas.addEventListener('pointerdown', (event) => this.#drag(event));
    canvas.addEventListener('keydown', (event) => this.#key(event));
    canvas.addEventListener('pointermove', (event) => this.#point(event));
    canvas.addEventListener('dblclick', () => state.fit());
    canvas.addEventListener(
      'wheel',
      (event) => {
        event.preventDefault();
        state.zoom(Math.exp(event.deltaY * 0.002), this.#time(event));
      },
      { passive: false },
    );
  }

  #key(event) {
    const { state } = this;
    const action = {
      ArrowLeft: () => state.pan(-0.1),
      ArrowRight: () => state.pan(0.1),
      ArrowUp: () => state.zoom(0.8),
      ArrowDown: () => state.zoom(1 / 0.8),
    }[event.key];
    if (!action) return;
    event.preventDefault();
    event.stopPropagation();
    action();
  }

  #time(event) {
    const { least, most } = this.state.view;
    const x = event.clientX - this.canvas.getBoundingClientRect().left;
    return least + (x / this.width) * (most - least);
  }

  #x(at) {
    const { least, most } = this.state.view;
    return ((at - least) / (most - least)) * this.width;
  }

  /** The part of the window at a pointer: an edge, the inside, or the outside. */
  #partAt(event) {
    const x = event.clientX - this.canvas.getBoundingClientRect().left;
    const from = this.#x(this.state.view.from);
    const to = this.#x(this.state.view.to);
    if (Math.abs(x - from) <= EDGE) return 'from';
    if (Math.abs(x - to) <= EDGE) return 'to';
    return x > from && x < to && to - from < this.width - 4 ? 'inside' : 'outside';
  }

  #point(event) {
    const cursors = { from: 'ew-resize', to: 'ew-resize', inside: 'grab', outside: 'crosshair' };
    this.canvas.style.cursor = cursors[this.#partAt(event)];
  }

  #drag(event) {
    const { state } = this;
    const part = this.#partAt(event);
    const began = this.#time(event);
    const { from, to } = state.view;
    whileDragged(event, (moved) => {
      const at = this.#time(moved);
      if (part === 'inside') state.show(from + at - began, to + at - began);
      else if (part === 'from') state.show(Math.min(at, to), Math.max(at, to));
      else if (part === 'to') state.show(Math.min(at, from), Math.max(at, from));
      else if (Math.abs(this.#x(at) - this.#x(began)) > 3) {
        state.show(Math.min(at, began), Math.max(at, began));
      }
    });
  }

  draw() {
    const { state, width } = this;
    const { colours } = state.theme;
    const context = fitted(this.canvas, width, HEIGHT);
    context.fillStyle = colours.panel;
    context.fillRect(0, 0, width, HEIGHT);
    this.#drawBusy(context, colours);
    const x0 = this.#x(state.view.from);
    const x1 = this.#x(state.view.to);
    context.fillStyle = colours.background;
    context.globalAlpha = 0.65;
    context.fillRect(0, 0, x0, HEIGHT);
    context.fillRect(x1, 0, width - x1, HEIGHT);
    context.globalAlpha = 1;
    context.strokeStyle = colours.accent;
    context.lineWidth = 1.5;
    context.strokeRect(x0 + 0.75, 0.75, Math.max(3, x1 - x0) - 1.5, HEIGHT - 1.5);
    context.fillStyle = colours.cursor;
    context.fillRect(this.#x(state.cursor), 0, 1, HEIGHT);
    this.canvas.setAttribute(
      'aria-valuetext',
      `${formatTime(state.view.from, state.view.span)} – ${formatTime(state.view.to, state.view.span)}`,
    );
    const { least, most, from, to } = state.view;
    for (const [name, at] of [
      ['min', least],
      ['max', most],
      ['now', (from + to) / 2],
    ]) {
      this.canvas.setAttribute(`aria-value${name}`, at.toFixed(3));
    }
  }

  #drawBusy(context, colours) {
    const { scenes, view } = this.state;
    const whole = { from: view.least, to: view.most };
    const each = (HEIGHT - 6) / scenes.length;
    this.busy ??= [];
    scenes.forEach((scene, number) => {
      const kept = this.busy[number];
      if (
        !kept ||
        kept.width !== this.width ||
        kept.shift !== scene.shift ||
        kept.most !== view.most
      ) {
        const found = shares(scene, sampledLanes(scene), whole, this.width, CELL);
        this.busy[number] = { found, width: this.width, shift: scene.shift, most: view.most };
      }
      const { found } = this.busy[number];
      const bottom = 3 + (number + 1) * each;
      for (let cell = 0; cell * SUMS < found.length; cell++) {
        let y = bottom;
        for (const s of [1, 2, 0, 3, 5]) {
          const height = Math.min(found[cell * SUMS + s] * (each - 2), y - bottom + each - 2);
          if (height < 0.2) continue;
          context.fillStyle = colours[CLASSES[TIMED[s]]];
          context.fillRect(cell * CELL, y - height, CELL, height);
          y -= height;
        }
      }
    });
  }
}

/** Lanes that stand for all of them where there are many: those of some ranks, spread by the golden
 *  ratio, since every eighth rank or lane would be the same device or stream of each server. */
function sampledLanes(scene) {
  const lanes = scene.laneRank.length;
  const ranks = scene.ranks.length;
  if (lanes <= MOST_LANES) return Array.from({ length: lanes }, (_, lane) => lane);
  const count = Math.max(1, Math.floor((MOST_LANES * ranks) / lanes));
  const spread = Array.from({ length: count }, (_, i) => Math.floor(((i * 0.618034) % 1) * ranks));
  return [...new Set(spread)].flatMap((k) => scene.lanesOf[k]);
}
