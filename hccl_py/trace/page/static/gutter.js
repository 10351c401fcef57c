/** The names of the rows, with what folds, pins and uncovers ranks: a list for screen readers, too. */

import { formatShare } from './format.js';
import { markOf } from './mark.js';
import { h } from './dom.js';
import { t } from './words.js';

export class Gutter {
  constructor(state, lanes, element) {
    this.state = state;
    this.lanes = lanes;
    this.element = element;
  }

  draw() {
    const { state, lanes } = this;
    const focused = document.activeElement?.dataset?.key;
    this.element.setAttribute('aria-label', t('rows_label'));
    const rows = lanes.visible();
    const items = rows.map((row) => {
      const item = this.#item(row);
      item.style.top = `${lanes.top(row)}px`;
      item.style.height = `${row.height}px`;
      if (row.pinned) item.classList.add('pinned');
      else item.style.clipPath = clip(lanes.top(row), state.rows.pinnedHeight);
      return item;
    });
    this.element.replaceChildren(...items);
    if (focused) this.element.querySelector(`[data-key="${focused}"]`)?.focus();
  }

  #item(row) {
    if (row.kind === 'head') return this.#head(row);
    if (row.kind === 'lane') return this.#lane(row);
    return row.kind === 'links' ? this.#links(row) : this.#link(row);
  }

  /** The head of the rows of links. */
  #links({ scene }) {
    const { state } = this;
    const isFolded = state.rows.isFolded(scene, 'links');
    return h(
      'li',
      { class: 'head links' },
      h(
        'button',
        {
          class: 'fold',
          type: 'button',
          'data-key': `fold-${scene.number}-links`,
          'aria-expanded': String(!isFolded),
          'aria-label': t('links_row_fold'),
          onclick: () => {
            state.rows.toggleFold(scene, 'links');
            state.changed('rows');
          },
        },
        isFolded ? '▸' : '▾',
      ),
      markOf(state, scene),
      h('span', { class: 'name' }, t('links_row')),
      h('span', { class: 'count' }, scene.links.share.length),
    );
  }

  #link({ scene, link }) {
    const { names, share } = scene.links;
    const name = names[link].join(' → ');
    return h(
      'li',
      { class: 'lane', title: name },
      stripeOf(this.state, scene),
      h('span', { class: 'name' }, name),
      h('span', { class: 'count' }, formatShare(share[link])),
    );
  }

  #head(row) {
    const { state } = this;
    const { scene, k } = row;
    const rank = scene.ranks[k];
    const isFolded = state.rows.isFolded(scene, k);
    const isPinned = state.rows.isPinned(scene, k);
    const change = (what) => () => {
      state.rows[what](scene, k);
      state.changed('rows');
    };
    return h(
      'li',
      { class: 'head', 'data-rank': rank },
      h(
        'button',
        {
          class: 'fold',
          type: 'button',
          'data-key': `fold-${scene.number}-${rank}`,
          'aria-expanded': String(!isFolded),
          'aria-label': t(isFolded ? 'unfold' : 'fold', { rank }),
          onclick: change('toggleFold'),
        },
        isFolded ? '▸' : '▾',
      ),
      markOf(state, scene),
      h('span', { class: 'name' }, t('rank', { rank })),
      this.#alike(row, change('toggleAlike')),
      this.#usage(row),
      h(
        'button',
        {
          class: 'pin',
          type: 'button',
          'data-key': `pin-${scene.number}-${rank}`,
          'aria-pressed': String(isPinned),
          title: t(isPinned ? 'unpin' : 'pin', { rank }),
          'aria-label': t(isPinned ? 'unpin' : 'pin', { rank }),
          onclick: change('togglePin'),
        },
        isPinned ? '◆' : '◇',
      ),
    );
  }

  /** The number of ranks that do the same at the same times, and are hidden for it. */
  #alike({ scene, k }, toggled) {
    const rank = scene.ranks[k];
    const others = scene.alike.get(rank);
    if (scene.twin[k] !== rank) {
      return h('span', { class: 'alike' }, t('alike_of', { rank: scene.twin[k] }));
    }
    if (!others) return null;
    const isOpen = this.state.rows.isOpened(scene, k);
    const some = others.slice(0, 12).join(', ') + (others.length > 12 ? ' …' : '');
    const title = isOpen ? t('alike_hide') : t('alike_show', { count: others.length, ranks: some });
    return h(
      'button',
      {
        class: 'alike',
        type: 'button',
        title,
        'data-key': `alike-${scene.number}-${rank}`,
        'aria-expanded': String(isOpen),
        'aria-label': title,
        onclick: toggled,
      },
      t('alike', { count: others.length }),
    );
  }

  #usage({ scene, k }) {
    const busy = scene.usage[3 * k] / (scene.total || 1);
    const waiting = scene.usage[3 * k + 1] / (scene.total || 1);
    const title = `${t('busy')} ${formatShare(busy)}, ${t('waiting')} ${formatShare(waiting)}`;
    const meter = h('span', { class: 'usage', title, role: 'img', 'aria-label': title });
    for (const [name, share] of [
      ['busy', busy],
      ['waiting', waiting],
    ]) {
      const part = h('span', { class: name });
      part.style.width = `${Math.max(0, Math.min(1, share)) * 100}%`;
      meter.append(part);
    }
    return meter;
  }

  #lane(row) {
    const { scene, lane } = row;
    const tasks = scene.tasksOf(lane);
    const name = scene.laneName(lane);
    const item = h(
      'li',
      { class: 'lane', title: name },
      stripeOf(this.state, scene),
      h('span', { class: 'name' }, name),
      tasks > 0 && h('span', { class: 'count' }, tasks),
    );
    return item;
  }
}

function stripeOf(state, scene) {
  return state.scenes.length > 1 ? h('span', { class: `stripe mark-${scene.number}` }) : null;
}

function clip(top, pinnedHeight) {
  const hidden = pinnedHeight - top;
  return hidden > 0 ? `inset(${hidden}px 0 0 0)` : 'none';
}
