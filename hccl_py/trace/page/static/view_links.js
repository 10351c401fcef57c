/** The load of links in the course of time, and all links by how much of the total they are busy. */

import { markOf } from './mark.js';
import { List } from './list.js';
import { formatBytes, formatShare, formatTime } from './format.js';
import { fitted, h } from './dom.js';
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
const EDGE = 52; // for the scale

export class LinksView {
  constructor(state) {
    this.name = 'links';
    this.state = state;
    this.rowsOf = state.scenes.flatMap((scene) =>
      scene.busiestLinks.map((link) => ({ scene, link })),
    );
    this.rowsOf.sort((a, b) => b.scene.links.share[b.link] - a.scene.links.share[a.link]);
    this.ticked = this.rowsOf.slice(0, AT_FIRST);
    this.canvas = h('canvas', { role: 'img' });
    this.room = h('div', { class: 'loads' }, this.canvas);
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
      this.room,
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

  /** Load over the time that the lanes show, a line for each link that is ticked. */
  #drawChart() {
    const { theme, view, cursor } = this.state;
    const [width, height] = [
      Math.max(200, this.room.clientWidth),
      Math.max(100, this.room.clientHeight),
    ];
    const g = fitted(this.canvas, width, height);
    const most = this.ticked.reduce(
      (top, { scene, link }) => Math.max(top, this.#most(scene, link)),
      1,
    );
    const x = (at) => EDGE + ((at - view.from) / view.span) * (width - EDGE - 8);
    const y = (share) => height - 22 - (share / most) * (height - 34);
    g.clearRect(0, 0, width, height);
    g.font = '11px system-ui, sans-serif';
    g.lineWidth = 1;
    for (const share of [0, 0.5, 1]) {
      g.fillStyle = theme.colours.faint;
      g.fillRect(EDGE, y(share * most), width - EDGE - 8, 1);
      g.fillStyle = theme.colours.muted;
      g.fillText(formatShare(share * most), 4, y(share * most) + 4);
      g.fillText(
        formatTime(view.from + share * view.span, view.span),
        EDGE + share * (width - EDGE - 76),
        height - 6,
      );
    }
    g.save();
    g.beginPath();
    g.rect(EDGE, 0, width - EDGE - 8, height - 20);
    g.clip();
    this.ticked.forEach(({ scene, link }, place) => {
      const { load, share } = scene.links;
      const bins = load.length / share.length;
      g.strokeStyle = COLOURS[place];
      g.lineWidth = 1.5;
      g.setLineDash(scene.number ? [5, 3] : []);
      g.beginPath();
      for (let k = 0; k < bins; k++) {
        const level = y(load[link * bins + k]);
        g.lineTo(x((k * scene.total) / bins + scene.shift), level);
        g.lineTo(x(((k + 1) * scene.total) / bins + scene.shift), level);
      }
      g.stroke();
    });
    g.setLineDash([]);
    g.fillStyle = theme.colours.cursor;
    g.fillRect(x(cursor), 0, 1, height);
    g.restore();
    this.canvas.setAttribute('aria-label', t('links_chosen'));
  }

  #most(scene, link) {
    const bins = scene.links.load.length / scene.links.share.length;
    return scene.links.load
      .subarray(link * bins, (link + 1) * bins)
      .reduce((a, b) => Math.max(a, b), 0);
  }
}
