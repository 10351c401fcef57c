/** The selected task: what it does, when, with which memory, and what it hangs on. */

import { POST, STUCK, WAIT } from './scene.js';
import { LETTERS } from './mark.js';
import { arrowsOf } from './arrows.js';
import { bufferAt, nameOf, notifyOf, placeOf, rangeOf, textAt } from './describe.js';
import { button, facts, h } from './dom.js';
import { formatBytes, formatChange, formatRate, formatTime } from './format.js';
import { phaseName } from './phase_rows.js';
import { t } from './words.js';

export class TaskView {
  constructor(state) {
    this.state = state;
  }

  build() {
    const { selected } = this.state;
    if (!selected) return [];
    const { scene, bar } = selected;
    const rows = [...this.#what(scene, bar), ...this.#data(scene, bar)];
    return [this.#title(scene, bar), facts(rows), ...this.#chain(scene)];
  }

  #title(scene, bar) {
    const names = ['copy', 'transfer', 'reduce', 'compute', 'wait', 'post', 'stuck'];
    const name = names[scene.classOf[bar]];
    const notify = notifyOf(scene, bar);
    const kind = scene.kindName(bar);
    return h('h2', {}, h('span', { class: `swatch ${name}` }), kind, notify && ` ${notify}`);
  }

  #what(scene, bar) {
    const { bars } = scene;
    const lane = bars.lane[bar];
    const place = {
      lane: placeOf(scene, bar),
      number: bars.number[bar],
      count: scene.tasksOf(lane),
    };
    const rows = [[t('where'), t('place', place)]];
    rows.push([t('time'), this.#time(scene, bar)]);
    rows.push(...this.#elsewhere(scene, bar));
    if (scene.classOf[bar] === WAIT || scene.classOf[bar] === STUCK)
      rows.push(this.#wait(scene, bar));
    if (scene.classOf[bar] === POST) {
      rows.push([t('wakes'), this.#link(scene, bars.partner[bar])]);
    }
    if (bars.peer[bar] >= 0) rows.push([t('peer'), t('rank', { rank: bars.peer[bar] })]);
    const label = textAt(scene.labels, bars.label[bar]);
    if (label) rows.push([t('label'), phaseName(scene, bars.label[bar], bars.round[bar])]);
    if (scene.header.rounds > 1) rows.push([t('round'), bars.round[bar] + 1]);
    const source = textAt(scene.sources, bars.source[bar]);
    if (source) rows.push([t('source'), h('code', {}, source)]);
    return rows;
  }

  #time(scene, bar) {
    const { start_us, end_us, effect_us, state } = scene.bars;
    if (state[bar] === 1) return h('strong', { class: 'bad' }, t('stuck'));
    if (state[bar] === 2) return h('strong', { class: 'bad' }, t('unreached'));
    const [from, to] = [formatTime(start_us[bar]), formatTime(end_us[bar])];
    const lines = [
      h('strong', {}, formatTime(end_us[bar] - start_us[bar])),
      `  ${t('from_to', { from, to })}`,
    ];
    if (effect_us[bar] > end_us[bar]) {
      const word = scene.classOf[bar] === POST ? 'sets' : 'arrives';
      lines.push(h('div', {}, t(word, { time: formatTime(effect_us[bar]) })));
    }
    const step = scene.critical.bar.indexOf(bar);
    if (step >= 0) lines.push(h('div', { class: 'critical' }, t('on_critical')));
    return lines;
  }

  /** The time of the same task in the other schedule, where that has it. */
  #elsewhere(scene, bar) {
    const other = this.state.scenes[1 - scene.number];
    const same = other ? scene.counterpart(bar, other) : -1;
    if (same < 0) return [];
    const lasts = (some, one) => some.bars.end_us[one] - some.bars.start_us[one];
    const change = formatChange(lasts(other, same) - lasts(scene, bar));
    const begins = formatTime(other.bars.start_us[same]);
    return [
      [
        t('other_time', { mark: LETTERS[other.number] }),
        [
          this.#link(other, same),
          ` ${formatTime(lasts(other, same))} (${change}), ${t('from', { at: begins })}`,
        ],
      ],
    ];
  }

  #wait(scene, bar) {
    const { partner, start_us, effect_us } = scene.bars;
    const post = partner[bar];
    const late = post >= 0 ? effect_us[post] - start_us[bar] : 0;
    const note =
      late > 0
        ? h('div', { class: 'muted' }, t('slack_of_wait', { time: formatTime(late) }))
        : null;
    return [t('waits_for'), [this.#link(scene, post), note]];
  }

  /** A button that goes to a task. */
  #link(scene, bar) {
    if (bar < 0) return h('strong', { class: 'bad' }, t('nobody'));
    const go = () => this.state.select(scene, bar);
    return button(nameOf(scene, bar), go, { class: 'link', title: t('go_to') });
  }

  #data(scene, bar) {
    const { bars } = scene;
    if (bars.src_buffer[bar] < 0 && bars.dst_buffer[bar] < 0) return [];
    const size = bars.size[bar];
    const arrived = Math.max(bars.end_us[bar], bars.effect_us[bar]);
    const time = arrived - bars.start_us[bar];
    return [
      [t('moves'), t('rate', { bytes: formatBytes(size), rate: formatRate(size, time) })],
      [
        t('memory_from'),
        memory(scene, bars.src_rank[bar], bars.src_buffer[bar], bars.src_offset[bar], size),
      ],
      [
        t('memory_to'),
        memory(
          scene,
          bars.dst_rank[bar],
          bars.dst_buffer[bar],
          bars.dst_offset[bar],
          bars.dst_size[bar] >= 0 ? bars.dst_size[bar] : size,
        ),
      ],
    ];
  }

  /** The arrows that are drawn, with buttons that draw more of them or fewer. */
  #chain(scene) {
    const arrows = arrowsOf(this.state);
    const { depth } = this.state;
    const step = (word, by) => button(t(word), () => this.state.extend(by));
    const rows = arrows.slice(0, 60).map(({ post, wait }) => {
      const notify = ` ${notifyOf(scene, post)} → `;
      return h('li', {}, this.#link(scene, post), notify, this.#link(scene, wait));
    });
    return [
      h('h3', {}, t('chain'), ` ${t('chain_state', { arrows: arrows.length, depth })}`),
      h('div', { class: 'buttons' }, step('extend', 1), depth > 1 && step('shorten', -1)),
      h('ul', { class: 'chain' }, rows),
    ];
  }
}

function memory(scene, rank, buffer, offset, size) {
  if (buffer < 0 || !bufferAt(scene, buffer)) return '–';
  return rangeOf(scene, rank, buffer, offset, offset + size);
}
