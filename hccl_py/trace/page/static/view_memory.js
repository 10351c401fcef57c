/** The memory of a rank at a moment: buffers as strips, blocks coloured by whose data they are. */

import { RankMemory } from './memory.js';
import { fitted, h } from './dom.js';
import { bufferAt, nameOf } from './describe.js';
import { formatBytes, formatTime } from './format.js';
import { t } from './words.js';
import { LETTERS } from './mark.js';

const STRIP = 30;
const GAP = 12;
const NAME = 120;
const MOST_ROWS = 400;
const MOST_BANDS = 15;

export class MemoryView {
  constructor(state) {
    this.name = 'memory';
    this.state = state;
    this.chosen = null;
    this.kept = null;
    this.select = h('select', { onchange: () => this.#choose() });
    this.slider = h('input', {
      type: 'range',
      min: '0',
      step: '1',
      class: 'moment',
      oninput: () => this.#slide(),
    });
    this.back = h('button', { type: 'button', onclick: () => this.#step(-1) }, '‹');
    this.on = h('button', { type: 'button', onclick: () => this.#step(1) }, '›');
    this.said = h('span', { class: 'muted' });
    this.canvas = h('canvas', { role: 'img' });
    this.rows = h('tbody', {});
    this.caption = h('caption', {});
    this.controls = h(
      'div',
      { class: 'controls' },
      this.select,
      this.back,
      this.slider,
      this.on,
      this.said,
    );
    this.picture = h('div', { class: 'picture' }, this.canvas);
    this.body = h(
      'div',
      { class: 'memory' },
      this.picture,
      h('div', { class: 'detail' }, h('table', {}, this.caption, this.rows)),
    );
    this.element = h('div', { class: 'stack' });
    state.on('selection', () => {
      if (state.selected) this.chosen = null;
    });
  }

  draw() {
    const { state } = this;
    const scene = this.#scene();
    if (!scene.memory) {
      const why = scene.header.memory_left_out || t('no_memory');
      this.element.replaceChildren(h('p', { class: 'empty' }, why));
      return;
    }
    if (!this.controls.isConnected) this.element.replaceChildren(this.controls, this.body);
    this.#fillRanks();
    const rank = this.#rank();
    if (!this.kept || this.kept.rank !== rank || this.scene !== scene) {
      this.kept = new RankMemory(scene, rank);
      this.scene = scene;
    }
    const { kept } = this;
    const count = kept.countAt(state.cursor - scene.shift);
    this.count = count;
    this.slider.setAttribute('aria-label', t('memory_slider'));
    this.slider.min = String(kept.before);
    this.slider.max = String(kept.changes.length);
    this.slider.value = String(count);
    this.said.textContent =
      `${t('memory_at')} ${formatTime(state.cursor - scene.shift, state.view.total)} · ` +
      t('memory_change', { at: count - kept.before, count: kept.changes.length - kept.before });
    const held = kept.state(count);
    this.#drawStrips(scene, held);
    this.#drawTable(scene, held);
  }

  #scene() {
    return this.chosen?.scene ?? this.state.selected?.scene ?? this.state.scenes[0];
  }

  #rank() {
    if (this.chosen) return this.chosen.rank;
    const { selected } = this.state;
    if (!selected) return this.state.scenes[0].ranks[0];
    const { scene, bar } = selected;
    const writes = scene.bars.dst_rank[bar];
    return writes >= 0 ? writes : scene.rankOf(bar);
  }

  /** A rank of either schedule is chosen by `scene:rank`. */
  #fillRanks() {
    const { scenes } = this.state;
    const current = `${this.#scene().number}:${this.#rank()}`;
    const stamp = `${scenes.length} ${t('rank', { rank: '' })}`;
    if (this.stamp !== stamp) {
      this.stamp = stamp;
      const some = scenes.flatMap((scene) =>
        [...scene.ranks]
          .slice(0, 4096)
          .map((rank) =>
            h(
              'option',
              { value: `${scene.number}:${rank}` },
              (scenes.length > 1 ? `${LETTERS[scene.number]} · ` : '') + t('rank', { rank }),
            ),
          ),
      );
      this.select.replaceChildren(...some);
      this.select.setAttribute('aria-label', t('memory_of'));
    }
    this.select.value = current;
  }

  #choose() {
    const [number, rank] = this.select.value.split(':').map(Number);
    this.chosen = { scene: this.state.scenes[number], rank };
    this.draw();
  }

  #slide() {
    this.#goTo(Number(this.slider.value));
  }

  #step(by) {
    this.#goTo(Math.min(Math.max(this.count + by, this.kept.before), this.kept.changes.length));
  }

  /** Move the cursor to when a change takes effect; what changes together is one step. */
  #goTo(count) {
    const { kept, scene } = this;
    this.chosen = { scene, rank: kept.rank };
    const forward = count > this.count;
    let at = count > kept.before ? kept.times[count - 1] : -1e-6;
    if (!forward && count > kept.before && kept.countAt(at) >= this.count) {
      let k = count - 1;
      while (k > kept.before && kept.times[k - 1] >= at) k--;
      at = k > kept.before ? kept.times[k - 1] : -1e-6;
    }
    this.state.moveCursor(at + scene.shift);
  }

  #drawStrips(scene, held) {
    const { kept } = this;
    const shown = held.map((_, k) => k).filter((k) => kept.used[k] > 0);
    const width = Math.max(320, this.picture.clientWidth - 4);
    const context = fitted(this.canvas, width, Math.max(1, shown.length) * (STRIP + GAP) + 6);
    const { colours } = this.state.theme;
    context.fillStyle = colours.background;
    context.fillRect(0, 0, width, 4000);
    context.textBaseline = 'middle';
    shown.forEach((buffer, place) => {
      const y = 4 + place * (STRIP + GAP);
      context.font = '12px system-ui, sans-serif';
      context.fillStyle = colours.text;
      context.fillText(bufferAt(scene, buffer).slice(0, 18), 4, y + STRIP / 2 - 6);
      context.fillStyle = colours.muted;
      context.font = '10px system-ui, sans-serif';
      context.fillText(formatBytes(kept.used[buffer]), 4, y + STRIP / 2 + 8);
      this.#drawStrip(context, held[buffer], y, width - NAME - 4, kept.used[buffer]);
    });
    this.canvas.setAttribute('aria-label', `${t('memory_of')} ${t('rank', { rank: kept.rank })}`);
  }

  #drawStrip(context, segments, y, width, size) {
    const { theme } = this.state;
    context.fillStyle = theme.hatch;
    context.fillRect(NAME, y, width, STRIP);
    for (const { start, stop, content } of segments) {
      const x0 = NAME + (start / size) * width;
      const x1 = NAME + (stop / size) * width;
      const origins = this.kept.originsOf(content);
      this.#drawBlock(context, origins, x0, y, Math.max(1, x1 - x0 - 1));
    }
    context.strokeStyle = theme.colours.line;
    context.lineWidth = 1;
    context.strokeRect(NAME - 0.5, y - 0.5, width + 1, STRIP + 1);
  }

  /** One rank's data is one colour; a sum has a band of each of its ranks. */
  #drawBlock(context, origins, x, y, width) {
    const { theme } = this.state;
    if (!origins.length) {
      context.fillStyle = theme.colours.undefined;
      context.fillRect(x, y, width, STRIP);
      return;
    }
    const some =
      origins.length > MOST_BANDS
        ? Array.from(
            { length: MOST_BANDS },
            (_, k) => origins[Math.floor((k * origins.length) / MOST_BANDS)],
          )
        : origins;
    const band = STRIP / some.length;
    some.forEach((rank, k) => {
      context.fillStyle = theme.ofRank(rank);
      context.fillRect(x, y + k * band, width, Math.ceil(band));
    });
    const text = origins.length === 1 ? `r${origins[0]}` : `Σ${origins.length}`;
    context.font = '600 11px system-ui, sans-serif';
    const wide = context.measureText(text).width;
    if (wide + 6 > width) return;
    context.fillStyle = theme.colours.background;
    context.globalAlpha = 0.82;
    context.fillRect(x + width / 2 - wide / 2 - 3, y + STRIP / 2 - 7, wide + 6, 14);
    context.globalAlpha = 1;
    context.fillStyle = theme.colours.text;
    context.fillText(text, x + width / 2 - wide / 2, y + STRIP / 2 + 0.5);
  }

  /** The place of data in the input that it is from, unless it is the same place. */
  #movedFrom(origins, { start, offset }) {
    if (!origins.length || offset <= 0 || offset === start) return null;
    const from = t('memory_offset', { offset: formatBytes(offset) });
    return h('span', { class: 'muted' }, ` ${from}`);
  }

  #drawTable(scene, held) {
    const ranks = scene.header.origins.reduce((most, set) => Math.max(most, set.length), 1);
    const rows = [];
    held.forEach((segments, buffer) => segments.forEach((segment) => rows.push([buffer, segment])));
    this.caption.textContent = t('memory_list');
    this.rows.replaceChildren(
      ...rows.slice(0, MOST_ROWS).map(([buffer, segment]) => {
        const origins = this.kept.originsOf(segment.content);
        const bar = this.kept.memory.bar[segment.change];
        const swatch = h('span', { class: 'swatch' });
        swatch.style.background = mixed(
          origins.slice(0, 8).map((rank) => this.state.theme.ofRank(rank)),
        );
        return h(
          'tr',
          {},
          h('th', { scope: 'row' }, bufferAt(scene, buffer)),
          h('td', {}, `[${formatBytes(segment.start)}, ${formatBytes(segment.stop)})`),
          h('td', {}, swatch, whose(origins, ranks), this.#movedFrom(origins, segment)),
          h(
            'td',
            {},
            bar < 0
              ? ''
              : h(
                  'button',
                  {
                    class: 'link',
                    type: 'button',
                    onclick: () => this.state.select(scene, bar),
                  },
                  nameOf(scene, bar),
                ),
          ),
        );
      }),
    );
  }
}

/** A background of equal stripes. */
function mixed(colours) {
  const each = 100 / colours.length;
  const stops = colours.map((colour, k) => `${colour} ${k * each}% ${(k + 1) * each}%`);
  return stops.length ? `linear-gradient(${stops.join(', ')})` : '';
}

/** Whose data a block is, in words. */
function whose(origins, all) {
  if (!origins.length) return t('memory_garbage');
  if (origins.length === 1) return t('memory_origin', { rank: origins[0] });
  if (origins.length === all && all > 2) return t('memory_all', { count: all });
  const some = origins.slice(0, 16).join(', ') + (origins.length > 16 ? ' …' : '');
  return t('memory_sum', { ranks: some });
}
