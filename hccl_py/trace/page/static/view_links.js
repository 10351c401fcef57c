/** The load of links in the course of time, and all links by how much of the total they are busy. */

import { Chart } from './chart.js';
import { LETTERS, markOf } from './mark.js';
import { List } from './list.js';
import { formatBytes, formatShare, formatTime } from './format.js';
import { h } from './dom.js';
import { t } from './words.js';

const COLOURS = [
  '#0072b2',
  '#e69f00',
  '#009e73',
  '#cc79a7',
  '#56b4e9',
  '#d55e00',
  '#8c7ae6',
  '#7f8c8d',
];
const AT_FIRST = 4;

export class LinksView {
  constructor(state) {
    this.name = 'links';
    this.state = state;
    this.rowsOf = state.scenes.flatMap((scene) =>
      scene.busiestLinks.map((link) => ({ scene, link })),
    );
    this.rowsOf.sort((a, b) => b.scene.links.share[b.link] - a.scene.links.share[a.link]);
    this.ticked = this.rowsOf.slice(0, AT_FIRST);
    this.chart = new Chart(state, 'loads');
    this.list = new List({
      count: () => this.rowsOf.length,
      label: () => t('links_label'),
      render: (number) => this.#row(this.rowsOf[number]),
      chosen: (number) => this.#toggle(this.rowsOf[number]),
    });
    this.note = h('p', { class: 'muted' });
    this.body = h(
      'div',
      { class: 'split wide-right' },
      h('div', { class: 'stack' }, this.note, this.list.element),
      this.chart.element,
    );
    this.element = h('div', { class: 'stack' });
  }

  draw() {
    if (!this.rowsOf.length) {
      this.element.replaceChildren(h('p', { class: 'empty' }, t('no_links')));
      return;
    }
    if (!this.body.isConnected) this.element.replaceChildren(this.body);
    const more = this.state.scenes.reduce((sum, s) => sum + (s.header.links?.more ?? 0), 0);
    this.note.textContent = more ? t('links_left_out', { count: more }) : t('links_chosen');
    this.list.draw();
    this.#drawChart();
  }

  #row(entry) {
    const { scene, link } = entry;
    const { names, bytes, share, gbps } = scene.links;
    const place = this.ticked.indexOf(entry);
    const tick = h('span', { class: 'tick', 'aria-hidden': 'true' }, place >= 0 ? '■' : '□');
    if (place >= 0) tick.style.color = COLOURS[place % COLOURS.length];
    return [
      tick,
      markOf(this.state, scene),
      h('span', { class: 'place' }, names[link].join(' → ')),
      h('span', { class: 'time' }, formatBytes(bytes[link])),
      h(
        'span',
        { class: 'time' },
        Number.isFinite(gbps[link]) ? `${gbps[link].toPrecision(3)} GB/s` : '∞',
      ),
      h('span', { class: 'time' }, formatShare(share[link])),
    ];
  }

  #toggle(entry) {
    const place = this.ticked.indexOf(entry);
    if (place >= 0) this.ticked.splice(place, 1);
    else this.ticked.push(entry);
    if (this.ticked.length > COLOURS.length) this.ticked.shift();
    this.draw();
  }

  #drawChart() {
    const { chart, state } = this;
    const { view } = state;
    const series = this.ticked.map((entry, place) => this.#line(entry, place));
    chart.element.setAttribute('role', 'img');
    chart.element.setAttribute('aria-label', t('links_chosen'));
    chart.draw({
      tooltip: {
        ...chart.tooltip((points) =>
          [
            formatTime(points[0].value[0], view.span),
            ...points.map((p) => `${p.seriesName}: ${formatShare(p.value[1])}`),
          ].join('\n'),
        ),
        trigger: 'axis',
      },
      grid: { left: 52, right: 16, top: 14, bottom: 26 },
      xAxis: chart.axis({
        type: 'value',
        min: view.from,
        max: view.to,
        axisLabel: {
          ...chart.text,
          formatter: (at) => formatTime(at, view.span),
          hideOverlap: true,
          showMaxLabel: false,
          showMinLabel: false,
        },
      }),
      yAxis: chart.axis({
        type: 'value',
        min: 0,
        max: (range) => Math.max(1, range.max),
        splitLine: { lineStyle: { color: state.theme.colours.faint } },
        axisLabel: { ...chart.text, formatter: (share) => formatShare(share) },
      }),
      series,
    });
  }

  /** Equal spans of time, as steps. */
  #line({ scene, link }, place) {
    const { load, names, share } = scene.links;
    const bins = load.length / share.length;
    const width = scene.total / bins;
    const data = [];
    for (let k = 0; k < bins; k++) data.push([k * width + scene.shift, load[link * bins + k]]);
    data.push([scene.total + scene.shift, load[link * bins + bins - 1]]);
    const mark = this.state.scenes.length > 1 ? `${LETTERS[scene.number]} ` : '';
    return {
      type: 'line',
      name: mark + names[link].join(' → ').slice(0, 80),
      step: 'end',
      symbol: 'none',
      lineStyle: { width: 1.5, color: COLOURS[place], type: scene.number ? 'dashed' : 'solid' },
      itemStyle: { color: COLOURS[place] },
      areaStyle:
        place === 0 && !scene.number ? { opacity: 0.12, color: COLOURS[place] } : undefined,
      data,
      markLine: place === 0 ? this.#cursor() : undefined,
    };
  }

  #cursor() {
    return {
      symbol: 'none',
      silent: true,
      label: { show: false },
      lineStyle: { color: this.state.theme.colours.cursor, type: 'solid', width: 1 },
      data: [{ xAxis: this.state.cursor }],
    };
  }
}
