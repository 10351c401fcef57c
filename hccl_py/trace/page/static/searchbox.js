/** The search field: finds as one types, and goes from task to task. */

import { byId, named } from './dom.js';
import { formatCount } from './format.js';
import { search } from './search.js';
import { t } from './words.js';

const MOST_SORTED = 200000;

export class SearchBox {
  constructor(state) {
    this.state = state;
    this.query = byId('query');
    this.hits = byId('hits');
    this.at = -1;
    this.query.addEventListener('input', () => this.#find());
    this.query.addEventListener('keydown', (event) => {
      if (event.key === 'Enter') this.go(event.shiftKey ? -1 : 1);
      if (event.key === 'Escape') {
        this.query.value = '';
        this.#find();
        byId('lanes').focus();
      }
      event.stopPropagation();
    });
    byId('next-hit').addEventListener('click', () => this.go(1));
    byId('previous-hit').addEventListener('click', () => this.go(-1));
  }

  #find() {
    const { state } = this;
    this.at = -1;
    const query = this.query.value.trim();
    if (!query) {
      state.found = null;
    } else {
      const [scene] = state.scenes
        .filter((some) => search(some, query).length)
        .concat(state.scenes);
      const ascending = search(scene, query);
      state.found = { scene, ascending, ordered: inTime(scene, ascending) };
    }
    this.draw();
    state.changed('found');
  }

  /** Go to the next task that was found, or the one before; after the last comes the first. */
  go(by) {
    const { state } = this;
    const count = state.found?.ordered.length;
    if (!count) return;
    this.at =
      this.at < 0 ? (by > 0 ? this.#firstAhead() : count - 1) : (this.at + by + count) % count;
    state.select(state.found.scene, state.found.ordered[this.at]);
    this.draw();
  }

  /** The first one that is not before what the screen shows. */
  #firstAhead() {
    const { scene, ordered } = this.state.found;
    const from = this.state.view.from - scene.shift;
    const at = ordered.findIndex((bar) => scene.bars.start_us[bar] >= from);
    return Math.max(at, 0);
  }

  draw() {
    this.query.placeholder = t('search');
    this.query.setAttribute('aria-label', t('search_label'));
    for (const [id, word] of [
      ['next-hit', 'search_next'],
      ['previous-hit', 'search_previous'],
    ]) {
      named(byId(id), t(word));
      byId(id).disabled = !this.state.found?.ordered.length;
    }
    this.hits.textContent = this.#said();
  }

  #said() {
    const { found } = this.state;
    if (!found) return '';
    const count = formatCount(found.ordered.length);
    if (!found.ordered.length) return t('search_none');
    return this.at < 0
      ? t('search_count', { count })
      : t('search_at', { at: formatCount(this.at + 1), count });
  }
}

/** Tasks in the order in which they start; too many to step through stay lane by lane. */
function inTime(scene, bars) {
  if (bars.length > MOST_SORTED) return bars;
  const { start_us } = scene.bars;
  return bars.slice().sort((a, b) => start_us[a] - start_us[b] || a - b);
}
