/** The critical path, step by step. */

import { List } from './list.js';
import { formsOf, nameOf } from './describe.js';
import { formatShare, formatTime } from './format.js';
import { h } from './dom.js';
import { t } from './words.js';

export class CriticalView {
  constructor(state) {
    this.name = 'critical';
    this.state = state;
    [this.scene] = state.scenes;
    const { bar } = this.scene.critical;
    this.list = new List({
      count: () => bar.length,
      label: () => t('critical_label'),
      render: (number) => this.#row(number),
      chosen: (number) => state.stepCritical(number),
    });
    this.sum = h('span', { class: 'muted' });
    this.buttons = h('div', { class: 'buttons' });
    this.shares = h('div', { class: 'detail' });
    this.element = h('div', { class: 'split' });
    state.on('selection', () => {
      if (state.tab === 'critical') this.draw();
    });
  }

  badge() {
    return this.scene.critical.bar.length || '';
  }

  draw() {
    const { critical, total } = this.scene;
    if (!critical.bar.length) {
      this.element.replaceChildren(h('p', { class: 'empty' }, t('no_critical')));
      return;
    }
    const { state } = this;
    const step = (word, by) =>
      h(
        'button',
        {
          type: 'button',
          onclick: () => state.stepCritical(state.criticalStep + by),
        },
        t(word),
      );
    this.buttons.replaceChildren(
      step('previous', -1),
      step('next', 1),
      h(
        'span',
        { class: 'muted' },
        t('critical_sum', { count: critical.bar.length, time: formatTime(total) }),
      ),
    );
    if (!this.list.element.isConnected) {
      this.element.replaceChildren(
        h('div', { class: 'stack' }, this.buttons, this.list.element),
        this.shares,
      );
    }
    this.list.mark(state.criticalStep);
    this.#drawShares();
  }

  #row(number) {
    const { scene } = this;
    const { bar, begin_us, end_us } = scene.critical;
    const width = (end_us[number] - begin_us[number]) / (scene.total || 1);
    const meter = h('span', { class: 'meter' }, h('span', {}));
    meter.firstChild.style.width = `${Math.max(1, width * 100)}%`;
    return [
      h('span', { class: 'time' }, formatTime(begin_us[number])),
      h('span', { class: 'time' }, formatTime(end_us[number] - begin_us[number])),
      meter,
      h('span', { class: 'place' }, nameOf(scene, bar[number])),
      h('span', { class: 'rest' }, formsOf(scene, bar[number])[0]),
    ];
  }

  /** The kinds of task on the path. */
  #drawShares() {
    const { scene } = this;
    const { bar, begin_us, end_us } = scene.critical;
    const sums = new Map();
    bar.forEach((b, k) => {
      const kind = scene.kindName(b);
      sums.set(kind, (sums.get(kind) ?? 0) + end_us[k] - begin_us[k]);
    });
    const rows = [...sums].filter(([, time]) => time > 0).sort((a, b) => b[1] - a[1]);
    this.shares.replaceChildren(
      h(
        'table',
        {},
        h(
          'tbody',
          {},
          rows.map(([kind, time]) =>
            h(
              'tr',
              {},
              h('th', { scope: 'row' }, kind),
              h('td', {}, formatTime(time)),
              h('td', {}, formatShare(time / (scene.total || 1))),
            ),
          ),
        ),
      ),
    );
  }
}
