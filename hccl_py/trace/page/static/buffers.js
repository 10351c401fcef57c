/** Buffers of ranks on the stage: every byte in its place, in the colour of whose data it is. */

import { Memory } from './memory.js';
import { bufferAt, nameOf, rangeOf } from './describe.js';
import { button, h, swatch } from './dom.js';
import { fontOf, inkOf } from './inks.js';
import { formatBytes } from './format.js';
import { t } from './words.js';

const MOST_ROWS = 200;

export class Buffers {
  constructor(state, scene) {
    Object.assign(this, { state, scene, memory: new Memory(scene) });
    this.shown = this.memory.used.map((_, k) => k).filter((k) => this.memory.used[k] > 0);
    this.most = Math.max(1, ...this.memory.used);
  }

  get moment() {
    return this.state.cursor - this.scene.shift;
  }

  at(rank) {
    return this.memory.of(rank).at(this.moment);
  }

  /** Draw the buffers of a rank in a box, all to one scale; returns what can be pointed at. */
  draw(g, rank, [x, y, width, height], wrong) {
    const { shown, scene } = this;
    const { theme } = this.state;
    const held = this.at(rank);
    const each = height / Math.max(1, shown.length);
    const name = each > 20 ? 10 : 0;
    const hot = [];
    shown.forEach((buffer, place) => {
      const top = y + place * each + name;
      const high = Math.max(2, each - name - 2);
      const scale = width / this.most;
      const used = this.memory.used[buffer];
      if (name) {
        g.fillStyle = theme.colours.muted;
        g.font = fontOf(9, 400);
        g.textAlign = 'left';
        g.fillText(bufferAt(scene, buffer).slice(0, Math.floor(width / 5)), x, top - 2);
      }
      g.fillStyle = theme.colours.undefined;
      g.globalAlpha = 0.35;
      g.fillRect(x, top, used * scale, high);
      g.globalAlpha = 1;
      for (const segment of held[buffer]) {
        const left = x + segment.start * scale;
        const wide = Math.max(0.8, (segment.stop - segment.start) * scale - 0.6);
        this.#block(g, this.memory.originsOf(segment.content), left, top, wide, high);
        hot.push({ kind: 'bytes', node: rank, buffer, segment, x: left, y: top, wide, high });
      }
      g.strokeStyle = theme.colours.line;
      g.lineWidth = 1;
      g.strokeRect(x - 0.5, top - 0.5, used * scale + 1, high + 1);
      for (const [of, word, start, stop] of wrong) {
        if (of !== rank || scene.buffers[buffer] !== word) continue;
        g.strokeStyle = theme.colours.bad;
        g.lineWidth = 2.5;
        g.strokeRect(x + start * scale, top, Math.max(3, (stop - start) * scale), high);
      }
    });
    return hot;
  }

  /** One rank's data is one colour; a sum has a band of each of its ranks. */
  #block(g, origins, x, y, width, height) {
    const { colours } = this.state.theme;
    g.fillStyle = colours.undefined;
    if (!origins.length) g.fillRect(x, y, width, height);
    const bands = Math.min(origins.length, Math.max(1, Math.floor(height)));
    for (let k = 0; k < bands; k++) {
      g.fillStyle = inkOf(origins[Math.floor((k * origins.length) / bands)]);
      g.fillRect(x, y + (k * height) / bands, width, height / bands + 0.3);
    }
    const text =
      origins.length === 1 ? `r${origins[0]}` : origins.length ? `Σ${origins.length}` : '';
    g.font = fontOf(10);
    const wide = g.measureText(text).width + 5;
    if (!text || wide > width || height < 11) return;
    const [middle, line] = [x + width / 2, y + height / 2];
    g.fillStyle = colours.background;
    g.globalAlpha = 0.82;
    g.fillRect(middle - wide / 2, line - 6, wide, 12);
    g.globalAlpha = 1;
    g.fillStyle = colours.text;
    g.textAlign = 'center';
    g.fillText(text, middle, line + 3.5);
  }

  /** Lines about some bytes: where, whose, from where in their input, written by which task. */
  said({ node, buffer, segment }) {
    const { scene } = this;
    const bar = scene.memory.bar[segment.change];
    return [
      rangeOf(scene, node, buffer, segment.start, segment.stop),
      this.#whose(segment),
      bar >= 0 && t('written_by', { task: nameOf(scene, bar) }),
    ];
  }

  /** Whose data a segment is, and from where in their input, unless that is the same place. */
  #whose({ content, offset, start }) {
    const origins = this.memory.originsOf(content);
    if (!origins.length) return t('memory_garbage');
    const some = origins.slice(0, 16).join(', ') + (origins.length > 16 ? ' …' : '');
    const whose =
      origins.length === 1
        ? t('memory_origin', { rank: origins[0] })
        : t('memory_sum', { count: origins.length, ranks: some });
    const isMoved = offset > 0 && offset !== start;
    return isMoved ? `${whose}, ${t('memory_offset', { offset: formatBytes(offset) })}` : whose;
  }

  /** The contents of a rank as a table, with the tasks that wrote them. */
  table(rank) {
    const { scene } = this;
    const rows = this.at(rank).flatMap((segments, buffer) => segments.map((s) => [buffer, s]));
    return h(
      'table',
      { class: 'contents' },
      rows.slice(0, MOST_ROWS).map(([buffer, segment]) => {
        const bar = scene.memory.bar[segment.change];
        const origins = this.memory.originsOf(segment.content);
        const where = `[${formatBytes(segment.start)}, ${formatBytes(segment.stop)})`;
        const go = () => this.state.goToTask(scene, bar);
        return h(
          'tr',
          {},
          h('th', { scope: 'row' }, bufferAt(scene, buffer), h('div', { class: 'muted' }, where)),
          h('td', {}, origins.length === 1 && swatch(inkOf(origins[0])), this.#whose(segment)),
          h('td', {}, bar >= 0 && button(nameOf(scene, bar), go, { class: 'link' })),
        );
      }),
    );
  }
}
