/** The heat map of traffic: from which rank to which, how many bytes, how busy what joins them. */

import { LETTERS } from './mark.js';
import { button, facts, fitted, h, placeOn, tooltip } from './dom.js';
import { formatBytes, formatShare } from './format.js';
import { largest } from './scene.js';
import { t } from './words.js';

const MOST_CELLS = 64;
const MOST_PAIRS = 20;
const [EDGE, TOP] = [40, 18]; // for names
const LIGHT = ['#f1f5f9', '#c7dcef', '#8fbce0', '#4f93c9', '#1f67a6', '#0b3d73'];
const DARK = ['#1c2530', '#173a5a', '#1d5a8e', '#2f80bd', '#69aede', '#bfe0f8'];

export class Heat {
  constructor(state) {
    Object.assign(this, { state, measure: 'bytes' });
    this.#lookAt(state.scenes[0]);
    this.canvas = h('canvas', {
      role: 'img',
      onclick: (event) => this.#enter(event),
      onpointermove: (event) => this.#hover(event),
      onpointerleave: (event) => tooltip(event, null),
    });
    this.rest = h('div', {});
    this.summary = h('summary', {});
    this.element = h('details', { id: 'traffic' }, this.summary, this.rest);
    this.element.addEventListener('toggle', () => this.draw());
  }

  /** Look at all ranks of a schedule. */
  #lookAt(scene) {
    this.scene = scene;
    this.whole = [...scene.traffic.source, ...scene.traffic.target].reduce(
      (most, rank) => Math.max(most, rank + 1),
      0,
    );
    Object.assign(this, { low: 0, count: this.whole });
  }

  draw() {
    this.summary.textContent = t('traffic');
    if (!this.element.open) return;
    this.cells = trafficCells(this.scene, this.low, this.count);
    const note = this.cells.size > 1 && t('traffic_blocks', { size: this.cells.size });
    const isEmpty = !this.scene.traffic.source.length;
    const parts = isEmpty ? [h('p', {}, t('no_traffic'))] : [this.canvas, note, this.#pairs()];
    this.rest.replaceChildren(this.#controls(), ...parts.filter(Boolean));
    if (!isEmpty) this.#drawCells();
  }

  #controls() {
    const choice = (text, isOn, change) => {
      const act = () => (change(), this.draw());
      return button(text, act, { 'aria-pressed': String(isOn) });
    };
    const { scenes } = this.state;
    return h(
      'div',
      { class: 'buttons' },
      scenes.length > 1 &&
        scenes.map((scene) =>
          choice(LETTERS[scene.number], scene === this.scene, () => this.#lookAt(scene)),
        ),
      ['bytes', 'share'].map((name) =>
        choice(t(`traffic_${name}`), this.measure === name, () => (this.measure = name)),
      ),
      this.count < this.whole && choice(t('traffic_all'), false, () => this.#lookAt(this.scene)),
    );
  }

  #name(cell) {
    const first = this.low + cell * this.cells.size;
    const last = Math.min(first + this.cells.size, this.low + this.count) - 1;
    return last > first ? `${first}–${last}` : `${first}`;
  }

  /** Cells as dark as their values are large; names at the edges. */
  #drawCells() {
    const { cells } = this.cells;
    const values = this.cells[this.measure];
    const most = values.reduce((a, b) => Math.max(a, b), 0) || 1;
    const { theme } = this.state;
    const scale = theme.name === 'dark' ? DARK : LIGHT;
    const side = Math.max(120, Math.min(360, this.rest.clientWidth - EDGE));
    const g = fitted(this.canvas, side + EDGE, side + TOP);
    const each = (this.cell = side / cells);
    g.clearRect(0, 0, side + EDGE, side + TOP);
    g.font = '10px system-ui, sans-serif';
    values.forEach((value, at) => {
      g.fillStyle = scale[value ? Math.ceil((value / most) * (scale.length - 1)) : 0];
      const [x, y] = [at % cells, Math.floor(at / cells)];
      g.fillRect(EDGE + x * each, TOP + y * each, each - 0.6, each - 0.6);
    });
    g.fillStyle = theme.colours.muted;
    const every = Math.ceil((this.cells.size > 1 ? 44 : 24) / each);
    for (let cell = 0; cell < cells; cell += every) {
      g.textAlign = 'right';
      g.fillText(this.#name(cell), EDGE - 5, TOP + (cell + 0.5) * each + 4);
      g.textAlign = 'center';
      g.fillText(this.#name(cell), EDGE + (cell + 0.5) * each, 12);
    }
    this.canvas.setAttribute('aria-label', t('traffic_label'));
  }

  /** The receiver and the sender of the cell under the pointer. */
  #under(event) {
    const { x, y } = placeOn(this.canvas, event);
    const [to, from] = [x - EDGE, y - TOP].map((at) => Math.floor(at / this.cell));
    return to >= 0 && from >= 0 && Math.max(to, from) < this.cells.cells ? [to, from] : null;
  }

  #hover(event) {
    const [to, from] = this.#under(event) ?? [];
    const at = from * this.cells.cells + to;
    const lines = to !== undefined && [
      `${this.#name(from)} → ${this.#name(to)}`,
      `${t('traffic_bytes')}: ${formatBytes(this.cells.bytes[at])}`,
      `${t('traffic_share')}: ${formatShare(this.cells.share[at])}`,
    ];
    tooltip(event, lines || null);
  }

  /** Look at the ranks of one cell's row and column. */
  #enter(event) {
    const { size } = this.cells;
    const found = this.#under(event);
    if (size === 1 || !found) return;
    const low = Math.min(...found) * size;
    const high = (Math.max(...found) + 1) * size;
    this.low += low;
    this.count = Math.min(Math.max(high - low, MOST_CELLS), this.whole - this.low);
    this.draw();
  }

  #pairs() {
    const { source, target, bytes, share } = this.scene.traffic;
    return facts(
      largest(this.scene.traffic[this.measure], MOST_PAIRS).map((k) => [
        `${source[k]} → ${target[k]}`,
        `${formatBytes(bytes[k])}, ${formatShare(share[k])}`,
      ]),
    );
  }
}

/**
 * @param {number} low first rank that is looked at
 * @param {number} count ranks from there on
 * @returns {{size: number, cells: number, bytes: Float64Array, share: Float64Array}} `size` ranks a
 *   side of each cell; `share` is the largest of a cell's pairs
 */
function trafficCells(scene, low, count) {
  const size = Math.max(1, Math.ceil(count / MOST_CELLS));
  const cells = Math.ceil(count / size);
  const bytes = new Float64Array(cells * cells);
  const share = new Float64Array(cells * cells);
  const { traffic } = scene;
  for (let k = 0; k < traffic.source.length; k++) {
    const from = traffic.source[k] - low;
    const to = traffic.target[k] - low;
    if (from < 0 || to < 0 || from >= count || to >= count) continue;
    const at = Math.floor(from / size) * cells + Math.floor(to / size);
    bytes[at] += traffic.bytes[k];
    share[at] = Math.max(share[at], traffic.share[k] || 0);
  }
  return { size, cells, bytes, share };
}
