/** The heat map of traffic: from which rank to which, how many bytes, how busy what joins them. */

import { Chart } from './chart.js';
import { MOST_CELLS, trafficCells } from './traffic.js';
import { formatBytes, formatShare } from './format.js';
import { h } from './dom.js';
import { largest } from './scene.js';
import { t } from './words.js';
import { LETTERS } from './mark.js';

const LIGHT = ['#f1f5f9', '#c7dcef', '#8fbce0', '#4f93c9', '#1f67a6', '#0b3d73'];
const DARK = ['#1c2530', '#173a5a', '#1d5a8e', '#2f80bd', '#69aede', '#bfe0f8'];

export class TrafficView {
  constructor(state) {
    this.name = 'traffic';
    this.state = state;
    this.measure = 'bytes';
    this.scene = state.scenes[0];
    this.all();
    this.chart = new Chart(state, 'heat');
    this.controls = h('div', { class: 'controls' });
    this.rows = h('tbody', {});
    this.caption = h('caption', {});
    this.body = h(
      'div',
      { class: 'split' },
      this.chart.element,
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

  #drawChart() {
    const { chart } = this;
    const { cells } = this.cells;
    const values = this.cells[this.measure];
    const data = [];
    for (let at = 0; at < values.length; at++) {
      if (this.cells.bytes[at]) data.push([at % cells, Math.floor(at / cells), values[at]]);
    }
    const names = Array.from({ length: cells }, (_, cell) => this.#name(cell));
    const format = this.measure === 'bytes' ? formatBytes : formatShare;
    const most = values.reduce((a, b) => Math.max(a, b), 0) || 1;
    const isDark = this.state.theme.name === 'dark';
    const { colours } = this.state.theme;
    const side = Math.max(120, chart.element.clientHeight - 62);
    const wide = Math.min(side * (cells > 16 ? 2.4 : 1), chart.element.clientWidth - 190);
    const axis = (name, more) =>
      chart.axis({
        type: 'category',
        data: names,
        name,
        nameLocation: 'middle',
        splitArea: { show: false },
        ...more,
      });
    chart.element.setAttribute('role', 'img');
    chart.element.setAttribute('aria-label', t('traffic_label'));
    chart.draw(
      {
        tooltip: chart.tooltip(({ value: [to, from] }) =>
          [
            `${t('traffic_from')} ${names[from]} ${t('traffic_to')} ${names[to]}`,
            `${t('traffic_bytes')}: ${formatBytes(this.cells.bytes[from * cells + to])}`,
            `${t('traffic_share')}: ${formatShare(this.cells.share[from * cells + to])}`,
          ].join('\n'),
        ),
        grid: { left: 72, top: 34, width: wide, height: side },
        xAxis: axis(t('traffic_to'), { position: 'top', nameGap: 18 }),
        yAxis: axis(t('traffic_from'), { inverse: true, nameGap: 48 }),
        visualMap: {
          min: 0,
          max: most,
          calculable: false,
          orient: 'vertical',
          left: wide + 94,
          top: 'middle',
          itemHeight: Math.max(60, side * 0.7),
          inRange: { color: isDark ? DARK : LIGHT },
          formatter: (value) => format(this.measure === 'bytes' ? Math.round(value) : value),
          textStyle: chart.text,
          text: [format(most), '0'],
        },
        series: [
          {
            type: 'heatmap',
            data,
            label: { show: false },
            itemStyle: { borderColor: colours.background, borderWidth: cells > 32 ? 0.5 : 1.5 },
            emphasis: { itemStyle: { borderColor: colours.accent, borderWidth: 2 } },
          },
        ],
      },
      (event) => this.#enter(event.value),
    );
  }

  /** Look at the ranks of one cell's row and column. */
  #enter([to, from]) {
    const { size } = this.cells;
    if (size === 1) return;
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
