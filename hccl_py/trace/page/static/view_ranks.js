/** The time that each rank works, waits and is idle. */

import { List } from './list.js';
import { LETTERS, markOf } from './mark.js';
import { formatShare, formatTime } from './format.js';
import { h } from './dom.js';
import { t } from './words.js';

export class RanksView {
  constructor(state) {
    this.name = 'ranks';
    this.state = state;
    this.all = state.scenes.flatMap((scene) =>
      [...scene.ranks].map((rank, k) => ({ scene, rank, k })),
    );
    this.list = new List({
      count: () => this.all.length,
      label: () => t('ranks_label'),
      render: (number) => this.#row(this.all[number]),
      chosen: (number) => this.#show(this.all[number]),
    });
    this.legend = h('p', { class: 'legend' });
    this.facts = h('dl', {});
    this.body = h(
      'div',
      { class: 'split' },
      h('div', { class: 'stack' }, this.legend, this.list.element),
      h('div', { class: 'detail' }, this.facts),
    );
    this.element = h('div', { class: 'stack' }, this.body);
  }

  draw() {
    this.legend.replaceChildren(
      ...['busy', 'waiting', 'idle'].map((name) =>
        h('span', {}, h('span', { class: `swatch ${name}` }), t(name)),
      ),
    );
    this.facts.replaceChildren(
      ...this.state.scenes.flatMap((scene) => [
        ...(this.state.scenes.length > 1
          ? [h('dt', {}, LETTERS[scene.number]), h('dd', {}, scene.header.title)]
          : []),
        ...scene.header.facts.flatMap(([name, value]) => [h('dt', {}, name), h('dd', {}, value)]),
        h('dt', {}, t('total')),
        h('dd', {}, formatTime(scene.total)),
      ]),
    );
    this.list.draw();
  }

  #row({ scene, rank, k }) {
    const times = [0, 1, 2].map((part) => scene.usage[3 * k + part]);
    const whole = times.reduce((a, b) => a + b, 0) || 1;
    const meter = h(
      'span',
      { class: 'usage' },
      ['busy', 'waiting'].map((name, part) => {
        const share = h('span', { class: name });
        share.style.width = `${(times[part] / whole) * 100}%`;
        return share;
      }),
    );
    return [
      markOf(this.state, scene),
      h('span', { class: 'place' }, t('rank', { rank })),
      meter,
      ...['busy', 'waiting', 'idle'].map((name, part) =>
        h(
          'span',
          { class: 'time', title: t(name) },
          `${formatTime(times[part])} (${formatShare(times[part] / whole)})`,
        ),
      ),
    ];
  }

  #show({ scene, k }) {
    const { state } = this;
    const [lane] = scene.lanesOf[k];
    if (lane === undefined) return;
    state.rows.uncover(scene, lane);
    state.changed('rows');
    state.changed('view');
    state.scrollTo = { scene, lane };
    state.changed('reveal');
  }
}
