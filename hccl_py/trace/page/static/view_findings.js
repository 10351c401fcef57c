/** The verifier's findings; choosing one goes to the task that it is about. */

import { List } from './list.js';
import { markOf } from './mark.js';
import { formatBytes } from './format.js';
import { h } from './dom.js';
import { nameOf } from './describe.js';
import { t } from './words.js';

export class FindingsView {
  constructor(state) {
    this.name = 'findings';
    this.state = state;
    this.all = state.scenes.flatMap((scene) =>
      scene.findings.map((finding) => ({ scene, finding })),
    );
    this.list = new List({
      count: () => this.all.length,
      label: () => t('findings_label'),
      render: (number) => this.#row(this.all[number]),
      chosen: (number) => this.#choose(number),
    });
    this.detail = h('div', { class: 'detail' });
    this.element = h('div', { class: 'split' });
  }

  badge() {
    return this.all.length || '';
  }

  draw() {
    if (!this.all.length) {
      this.element.replaceChildren(h('p', { class: 'empty' }, t('no_findings')));
      return;
    }
    if (!this.list.element.isConnected)
      this.element.replaceChildren(this.list.element, this.detail);
    this.list.draw();
    this.#drawDetail();
  }

  #row({ scene, finding }) {
    return [
      h('span', { class: `severity ${finding.severity}` }, finding.severity),
      h('strong', {}, finding.name),
      markOf(this.state, scene),
      h('span', { class: 'rest' }, finding.message),
    ];
  }

  #choose(number) {
    const { scene, finding } = this.all[number];
    if (finding.bars.length) this.state.select(scene, finding.bars[0]);
    this.#drawDetail();
  }

  #drawDetail() {
    const chosen = this.all[this.list.current] ?? this.all[0];
    const { scene, finding } = chosen;
    const go = (bar) =>
      h(
        'li',
        {},
        h(
          'button',
          {
            class: 'link',
            type: 'button',
            title: t('go_to'),
            onclick: () => this.state.select(scene, bar),
          },
          nameOf(scene, bar),
          ` ${scene.kindName(bar)}`,
        ),
      );
    this.detail.replaceChildren(
      h('h3', {}, finding.name),
      h('p', { class: 'message' }, finding.message),
      finding.hint
        ? h('p', {}, h('span', { class: 'muted' }, `${t('finding_hint')}: `), finding.hint)
        : '',
      finding.source ? h('p', {}, h('code', {}, finding.source)) : '',
      h('ul', { class: 'chain' }, finding.bars.slice(0, 200).map(go)),
      h(
        'ul',
        { class: 'chain' },
        finding.memory
          .slice(0, 50)
          .map(([rank, buffer, start, stop]) =>
            h(
              'li',
              {},
              `${t('rank', { rank })} ${buffer} [${formatBytes(start)}, ${formatBytes(stop)})`,
            ),
          ),
      ),
    );
  }
}
