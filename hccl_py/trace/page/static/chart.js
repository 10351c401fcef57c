/** ECharts with the page's colours. Its tooltips are drawn, not HTML: they need no inline style, and
 *  no text of theirs is parsed. */

import { h } from './dom.js';

export class Chart {
  constructor(state, className) {
    this.state = state;
    this.element = h('div', { class: className });
    this.chart = null;
  }

  /** Draw with an option of ECharts; what clicking does is given once. */
  draw(option, clicked) {
    if (!this.element.clientWidth) return;
    if (!this.chart) {
      this.chart = window.echarts.init(this.element, null, { renderer: 'canvas' });
      if (clicked) this.chart.on('click', clicked);
    }
    this.chart.resize();
    this.chart.setOption({ animation: false, ...option }, { notMerge: true });
  }

  /** Change parts of what is drawn. */
  update(option) {
    this.chart?.setOption(option);
  }

  get text() {
    const { colours } = this.state.theme;
    return { color: colours.muted, fontSize: 11, fontFamily: 'system-ui, sans-serif' };
  }

  tooltip(formatter) {
    const { colours } = this.state.theme;
    return {
      renderMode: 'richText',
      confine: true,
      backgroundColor: colours.panel,
      borderColor: colours.line,
      textStyle: { color: colours.text, fontSize: 12 },
      formatter,
    };
  }

  axis(more) {
    const { colours } = this.state.theme;
    return {
      axisLine: { lineStyle: { color: colours.line } },
      axisTick: { lineStyle: { color: colours.line } },
      splitLine: { show: false },
      axisLabel: this.text,
      nameTextStyle: this.text,
      ...more,
    };
  }
}
