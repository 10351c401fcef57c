/** A list of any length of which only what is on the screen exists; a listbox for screen readers. */

import { h } from './dom.js';

const ROW = 26;

export class List {
  /**
   * @param {object} options `count()`, `render(number)` (nodes of a row), `chosen(number)`, `label()`
   */
  constructor({ count, render, chosen, label }) {
    this.count = count;
    this.render = render;
    this.chosen = chosen;
    this.label = label;
    this.current = -1;
    this.inner = h('div', { class: 'list-inner' });
    this.element = h('div', { class: 'list', role: 'listbox', tabindex: '0' }, this.inner);
    this.element.addEventListener('scroll', () => this.draw());
    this.element.addEventListener('keydown', (event) => this.#key(event));
    this.id = `list-${Math.random().toString(36).slice(2)}`;
  }

  #key(event) {
    const page = Math.max(1, Math.floor(this.element.clientHeight / ROW) - 1);
    const steps = {
      ArrowDown: 1,
      ArrowUp: -1,
      PageDown: page,
      PageUp: -page,
      Home: -Infinity,
      End: Infinity,
    };
    if (!(event.key in steps)) return;
    event.preventDefault();
    event.stopPropagation();
    const last = this.count() - 1;
    this.choose(Math.min(last, Math.max(0, this.current + steps[event.key])));
  }

  /** Make a row the current one and say so. */
  choose(number) {
    if (number < 0 || number >= this.count()) return;
    this.mark(number);
    this.chosen(number);
  }

  /** Make a row the current one; the list scrolls to it. */
  mark(number) {
    this.current = number;
    const top = number * ROW;
    const { scrollTop, clientHeight } = this.element;
    if (number >= 0 && (top < scrollTop || top + ROW > scrollTop + clientHeight)) {
      this.element.scrollTop = Math.max(0, top - clientHeight / 2);
    }
    this.draw();
  }

  draw() {
    const count = this.count();
    const { scrollTop, clientHeight } = this.element;
    this.element.setAttribute('aria-label', this.label());
    // Browsers do not scroll further than about 16 million pixels.
    this.inner.style.height = `${Math.min(count * ROW, 1.6e7)}px`;
    const first = Math.max(0, Math.floor(scrollTop / ROW) - 2);
    const stop = Math.min(count, Math.ceil((scrollTop + Math.max(clientHeight, 200)) / ROW) + 2);
    const rows = [];
    for (let number = first; number < stop; number++) rows.push(this.#row(number, count));
    this.inner.replaceChildren(...rows);
    if (this.current >= 0) {
      this.element.setAttribute('aria-activedescendant', `${this.id}-${this.current}`);
    } else {
      this.element.removeAttribute('aria-activedescendant');
    }
  }

  #row(number, count) {
    const row = h(
      'div',
      {
        class: 'row',
        role: 'option',
        id: `${this.id}-${number}`,
        'data-number': number,
        'aria-setsize': count,
        'aria-posinset': number + 1,
        'aria-selected': String(number === this.current),
        onclick: () => this.choose(number),
      },
      this.render(number),
    );
    row.style.top = `${number * ROW}px`;
    return row;
  }
}
