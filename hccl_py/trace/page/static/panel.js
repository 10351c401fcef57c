/** The views below the lanes, one at a time, behind tabs. */

import { byId, h, whileDragged } from './dom.js';
import { t } from './words.js';

export class Panel {
  /** @param {object[]} views each with `name`, `element`, `draw()`, and maybe `badge()` */
  constructor(state, views) {
    this.state = state;
    this.views = views;
    this.tabs = byId('tabs');
    this.height = 270;
    byId('views').append(...views.map((view) => view.element));
    this.tabs.addEventListener('keydown', (event) => this.#key(event));
    this.#resizes(byId('splitter'));
    state.on('tab', () => this.draw());
  }

  #key(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    const at = this.views.findIndex((view) => view.name === this.state.tab);
    this.state.openTab(this.views[(at + step + this.views.length) % this.views.length].name);
    this.tabs.querySelector('[aria-selected="true"]').focus();
  }

  #resizes(splitter) {
    const set = (height) => {
      this.height = Math.min(Math.max(90, height), window.innerHeight - 220);
      byId('panel').style.height = `${this.height}px`;
    };
    splitter.addEventListener('pointerdown', (event) => {
      const began = event.clientY + this.height;
      whileDragged(event, (moved) => set(began - moved.clientY));
    });
    splitter.addEventListener('keydown', (event) => {
      const step = { ArrowUp: 24, ArrowDown: -24 }[event.key];
      if (!step) return;
      event.preventDefault();
      event.stopPropagation();
      set(this.height + step);
    });
  }

  draw() {
    byId('splitter').setAttribute('aria-label', t('resize'));
    byId('splitter').setAttribute('aria-valuenow', String(this.height));
    this.tabs.setAttribute('aria-label', t('panel_label'));
    const had = this.tabs.contains(document.activeElement);
    this.tabs.replaceChildren(...this.views.map((view) => this.#tab(view)));
    if (had) this.tabs.querySelector('[aria-selected="true"]').focus();
    for (const view of this.views) {
      const isOpen = view.name === this.state.tab;
      view.element.hidden = !isOpen;
      view.element.id = `view-${view.name}`;
      view.element.classList.add('view');
      view.element.setAttribute('role', 'tabpanel');
      view.element.setAttribute('aria-label', t(`tab_${view.name}`));
      if (isOpen) view.draw();
    }
  }

  #tab(view) {
    const isOpen = view.name === this.state.tab;
    const badge = view.badge?.();
    return h(
      'button',
      {
        type: 'button',
        role: 'tab',
        id: `tab-${view.name}`,
        'aria-selected': String(isOpen),
        'aria-controls': `view-${view.name}`,
        tabindex: isOpen ? '0' : '-1',
        onclick: () => this.state.openTab(view.name),
      },
      t(`tab_${view.name}`),
      badge ? h('span', { class: 'badge' }, badge) : null,
    );
  }

  /** Draw the open view again if it is one of those named. */
  refresh(...names) {
    const view = this.views.find((v) => v.name === this.state.tab);
    if (names.length === 0 || names.includes(view.name)) view.draw();
  }
}
