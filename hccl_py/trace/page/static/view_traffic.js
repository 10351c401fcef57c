/** The heat map of traffic: from which rank to which, how many bytes, how busy what joins them. */

import { MOST_CELLS, trafficCells } from './traffic.js';
import { formatBytes, formatShare } from './format.js';
import { fitted, h } from './dom.js';
import { largest } from './scene.js';
import { t } from './words.js';
import { LETTERS } from './mark.js';

const LIGHT = ['#f1f5f9', '#c7dcef', '#8fbce0', '#4f93c9', '#1f67a6', '#0b3d73'];
const EDGE = 56; // for the names of rows
const DARK = ['#1c2530', '#173a5a', '#1d5a8e', '#2f80bd', '#69aede', '#bfe0f8'];

export class TrafficView {
  constructor(state) {
    this.name = 'traffic';
    this.state = state;
    this.measure = 'bytes';
    this.scene = state.scenes[0];
    this.all();
    this.canvas = h('canvas', {
      role: 'img',
      onclick: (event) => this.#enter(event),
      onpointermove: (event) => this.#hover(event),
    });
    this.room = h('div', { class: 'heat' }, this.canvas);
    this.controls = h('div', { class: 'controls' });
    this.rows = h('tbody', {});
    this.caption = h('caption', {});
    this.body = h(
      'div',
      { class: 'split' },
      this.room,
      h('div', { class: 'detail' }, h('table', {}, this.caption, this.rows)),
    );
    this.element = h('div', { class: 'stack' });
  }

  all() {
    const { source, target } = this.scene.traffic;
    let most = 0;
    for (let k = 0; k < source.length; k++) most = Math.max(most, source[k], target[k]);
    this.low = 0;
    this.count = most + 1;
    this.whole = this.count;
  }

  draw() {
    if (!this.scene.traffic.source.length && this.state.scenes.length === 1) {
      this.element.replaceChildren(h('p', { class: 'empty' }, t('no_traffic')));
      return;
    }
    if (!this.body.isConnected) this.element.replaceChildren(this.controls, this.body);
    this.cells = trafficCells(this.scene, this.low, this.count);
    this.#drawControls();
    this.#drawChart();
    this.#drawTable();
  }

  #drawControls() {
    const { state } = this;
    const choice = (name, word) =>
      h(
        'button',
        {
          type: 'button',
          'aria-pressed': String(this.measure === name),
          onclick: () => {
            this.measure = name;
            this.draw();
          },
        },
        t(word),
      );
    const scenes =
      state.scenes.length < 2
        ? []
        : state.scenes.map((scene) =>
            h(
              'button',
              {
                type: 'button',
                'aria-pressed': String(scene === this.scene),
                onclick: () => {
                  this.scene = scene;
                  this.all();
                  this.draw();
                },
              },
              `${LETTERS[scene.number]} · ${t(scene.number ? 'second_schedule' : 'first_schedule')}`,
            ),
          );
    const out =
      this.count < this.whole
        ? h(
            'button',
            {
              type: 'button',
              onclick: () => {
                this.all();
                this.draw();
              },
            },
            t('traffic_all'),
          )
        : null;
    const note = this.cells.size > 1 ? t('traffic_blocks', { size: this.cells.size }) : '';
    this.controls.replaceChildren(
      ...[
        ...scenes,
        choice('bytes', 'traffic_bytes'),
        choice('share', 'traffic_share'),
        out,
        h('span', { class: 'muted' }, note),
      ].filter(Boolean),
    );
  }

  #name(cell) {
    const { size } = this.cells;
    const first = this.low + cell * size;
    const last = Math.min(first + size, this.low + this.count) - 1;
    return size > 1 ? `${first}–${last}` : `${first}`;
  }

  /** Cells as dark as their values are large; names at the edges. */
  #drawChart() {
    const { cells } = this.cells;
    const values = this.cells[this.measure];
    const most = values.reduce((a, b) => Math.max(a, b), 0) || 1;
    const { theme } = this.state;
    const scale = theme.name === 'dark' ? DARK : LIGHT;
    const room = Math.min(this.room.clientWidth - EDGE, this.room.clientHeight - 20);
    const side = Math.max(120, room);
    const g = fitted(this.canvas, side + EDGE, side + 18);
    this.cell = side / cells;
    g.clearRect(0, 0, side + EDGE, side + 18);
    g.font = '11px system-ui, sans-serif';
    for (let at = 0; at < values.length; at++) {
      const [column, row] = [at % cells, Math.floor(at / cells)];
      const shade = values[at] ? Math.ceil((values[at] / most) * (scale.length - 1)) : 0;
      g.fillStyle = scale[shade];
      g.fillRect(EDGE + column * this.cell, 18 + row * this.cell, this.cell - 0.6, this.cell - 0.6);
    }
    g.fillStyle = theme.colours.muted;
    const every = Math.ceil(30 / this.cell);
    for (let cell = 0; cell < cells; cell += every) {
      g.textAlign = 'right';
      g.fillText(this.#name(cell), EDGE - 6, 18 + (cell + 0.5) * this.cell + 4);
      g.textAlign = 'center';
      g.fillText(this.#name(cell), EDGE + (cell + 0.5) * this.cell, 12);
    }
    this.canvas.setAttribute('aria-label', t('traffic_label'));
  }

  /** The receiver and the sender of the cell under the pointer. */
  #under(event) {
    const box = this.canvas.getBoundingClientRect();
    const at = [event.clientX - box.left - EDGE, event.clientY - box.top - 18];
    const [to, from] = at.map((place) => Math.floor(place / this.cell));
    return to >= 0 && from >= 0 && Math.max(to, from) < this.cells.cells ? [to, from] : null;
  }

  #hover(event) {
    const found = this.#under(event);
    if (!found) return;
    const [to, from] = found;
    const at = from * this.cells.cells + to;
    this.canvas.title = [
      `${t('traffic_from')} ${this.#name(from)} ${t('traffic_to')} ${this.#name(to)}`,
      `${t('traffic_bytes')}: ${formatBytes(this.cells.bytes[at])}`,
      `${t('traffic_share')}: ${formatShare(this.cells.share[at])}`,
    ].join('\n');
  }

  /** Look at the ranks of one cell's row and column. */
  #enter(event) {
    const { size } = this.cells;
    const found = this.#under(event);
    if (size === 1 || !found) return;
    const [to, from] = found;
    const low = Math.min(to, from) * size;
    const high = (Math.max(to, from) + 1) * size;
    this.low += low;
    this.count = Math.min(Math.max(high - low, MOST_CELLS), this.whole - this.low);
    this.draw();
  }

  #drawTable() {
    const { source, target, bytes, share } = this.scene.traffic;
    const by = this.measure === 'bytes' ? bytes : share;
    const best = largest(by, 50);
    this.caption.textContent = t('traffic_most');
    this.rows.replaceChildren(
      ...best.map((k) =>
        h(
          'tr',
          {},
          h('th', { scope: 'row' }, `${source[k]} → ${target[k]}`),
          h('td', {}, formatBytes(bytes[k])),
          h('td', {}, formatShare(share[k])),
        ),
      ),
    );
  }
}
