/** Phases with their times, and of two schedules their differences. */

import { List } from './list.js';
import { formatChange, formatShare, formatTime } from './format.js';
import { h } from './dom.js';
import { phaseRows } from './phases.js';
import { t } from './words.js';
import { LETTERS } from './mark.js';

export class PhasesView {
  constructor(state) {
    this.name = 'phases';
    this.state = state;
    this.all = phaseRows(state.scenes);
    this.list = new List({
      count: () => this.all.length,
      label: () => t('phases_label'),
      render: (number) => this.#row(this.all[number]),
      chosen: (number) => this.#show(this.all[number]),
    });
    this.head = h('div', { class: 'row head-row' });
    this.controls = h('div', { class: 'controls' });
    this.element = h('div', { class: 'stack' });
  }

  draw() {
    const { scenes } = this.state;
    if (!this.all.length) {
      this.element.replaceChildren(h('p', { class: 'empty' }, t('no_phases')));
      if (scenes.length < 2) return;
    } else if (!this.list.element.isConnected) {
      this.element.replaceChildren(this.controls, this.head, this.list.element);
    }
    this.#drawControls();
    const two = scenes.length > 1;
    this.head.replaceChildren(
      cell('phase', t('phase')),
      ...(two ? ['A', 'B'] : ['']).flatMap((mark) => [
        cell('time', `${mark} ${t('begins')}`),
        cell('time', `${mark} ${t('lasts')}`),
      ]),
      two ? cell('time', t('difference')) : '',
      cell('rest', ''),
    );
    this.list.draw();
  }

  #drawControls() {
    const [first, second] = this.state.scenes;
    if (!second) {
      this.controls.replaceChildren(h('span', {}, `${t('total')} ${formatTime(first.total)}`));
      return;
    }
    const change = second.total - first.total;
    const named = (scene) =>
      h(
        'span',
        { class: 'named', title: scene.name },
        h('span', { class: `mark mark-${scene.number}` }, LETTERS[scene.number]),
        h('strong', {}, formatTime(scene.total)),
        ` ${scene.name}`,
      );
    const text = [
      named(first),
      named(second),
      h(
        'strong',
        { class: change > 0 ? 'slower' : 'faster' },
        `${formatChange(change)} (${change > 0 ? '+' : '−'}${formatShare(Math.abs(change) / (first.total || 1))})`,
      ),
    ];
    const back = second.shift
      ? h(
          'button',
          {
            type: 'button',
            onclick: () => {
              this.state.align(0, 0);
              this.draw();
            },
          },
          t('unalign'),
        )
      : '';
    const moved = second.shift
      ? h('span', { class: 'muted' }, t('aligned', { time: formatChange(second.shift) }))
      : '';
    this.controls.replaceChildren(...text, back, moved);
  }

  #row({ a, b }) {
    const { scenes } = this.state;
    const some = a ?? b;
    const rounds = Math.max(...scenes.map((scene) => scene.header.rounds));
    const name = some.label || t('unlabelled');
    const cells = [cell('phase', rounds > 1 ? `${some.round + 1} · ${name}` : name)];
    for (const phase of scenes.length > 1 ? [a, b] : [a]) {
      cells.push(cell('time', phase ? formatTime(phase.begin) : '–'));
      cells.push(cell('time', phase ? formatTime(phase.end - phase.begin) : '–'));
    }
    if (scenes.length > 1) cells.push(this.#difference(a, b));
    cells.push(this.#picture(a, b));
    return cells;
  }

  #difference(a, b) {
    if (!a || !b) return cell('time', '–');
    const change = b.end - b.begin - (a.end - a.begin);
    const name = Math.abs(change) < 5e-4 ? '' : change > 0 ? 'slower' : 'faster';
    return cell(`time ${name}`, formatChange(change));
  }

  /** When a phase is, as bars on one axis for both schedules. */
  #picture(a, b) {
    const { view } = this.state;
    const scale = (at) => `${(Math.max(0, at) / view.total) * 100}%`;
    const strip = h('span', { class: 'spans' });
    [a, b].forEach((phase, number) => {
      if (!phase) return;
      const span = h('span', { class: `span mark-${number}` });
      span.style.left = scale(phase.begin);
      span.style.width = scale(phase.end - phase.begin);
      strip.append(span);
    });
    return strip;
  }

  /** Zoom to a phase; where both schedules have it, both begin it at the same place. */
  #show({ a, b }) {
    const { state } = this;
    if (a && b) state.align(a.begin, b.begin);
    const shift = a ? 0 : state.scenes[1].shift;
    const from = (a ?? b).begin + shift;
    const to = Math.max(a?.end ?? 0, b ? b.end + (state.scenes[1]?.shift ?? 0) : 0);
    const edge = Math.max((to - from) * 0.05, 1e-3);
    state.show(from - edge, to + edge);
    this.#drawControls();
  }
}

function cell(name, text) {
  return h('span', { class: name }, text);
}
