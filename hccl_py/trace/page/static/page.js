/** The parts of the page, put together: what each change makes draw again. */

import { Gutter } from './gutter.js';
import { Keys } from './keys.js';
import { LaneCanvas } from './lanes.js';
import { PictureView } from './picture.js';
import { Pointer } from './pointer.js';
import { Ruler } from './ruler.js';
import { SearchBox } from './searchbox.js';
import { Side } from './side.js';
import { Toolbar } from './toolbar.js';
import { byId } from './dom.js';
import { languageName, switchLanguage, t } from './words.js';
import { shortLines } from './describe.js';

export class Page {
  constructor(state) {
    this.state = state;
    this.lanes = new LaneCanvas(state, byId('lanes'));
    this.ruler = new Ruler(state, this.lanes, byId('ruler'));
    this.gutter = new Gutter(state, this.lanes, byId('gutter'));
    this.scroller = byId('scroller');
    this.pointer = new Pointer(state, this.lanes, this.scroller, byId('gutter'));
    this.picture = new PictureView(state);
    this.side = new Side(state, this.picture);
    this.search = new SearchBox(state);
    this.keys = new Keys(state, this);
    this.toolbar = new Toolbar(state, this);
    this.#listen();
    this.#showMode();
    this.say();
  }

  get isLanes() {
    return this.state.mode === 'lanes';
  }

  #showMode() {
    byId('app').dataset.mode = this.state.mode;
    this.toolbar.draw();
    this.resize();
    this.picture.draw();
    if (this.isLanes && this.state.selected) this.#reveal();
  }

  #listen() {
    const { state } = this;
    state.on('view found cursor', () => this.#later());
    state.on('rows', () => {
      this.#layOut();
      this.#later();
    });
    state.on('view picture', () => this.side.draw());
    state.on('selection', () => {
      this.#later();
      this.side.draw();
      this.#announce();
    });
    state.on('look', () => {
      this.toolbar.draw();
      this.picture.draw();
      this.#later();
    });
    state.on('mode', () => this.#showMode());
    state.on('reveal', () => this.#reveal());
    state.theme.onChange(() => state.changed('look'));
    this.scroller.addEventListener('scroll', () => {
      state.scroll = this.scroller.scrollTop;
      this.#later();
    });
    new ResizeObserver(() => this.resize()).observe(byId('stage'));
  }

  /** Draw once before the next picture, however many changes there are until then. */
  #later() {
    this.waiting ||= requestAnimationFrame(() => {
      this.waiting = 0;
      this.draw();
    });
  }

  #layOut() {
    const { rows } = this.state;
    const room = byId('stage').clientHeight;
    byId('extent').style.height = `${rows.height + Math.min(rows.pinnedHeight, room) + 8}px`;
    this.state.scroll = this.scroller.scrollTop;
  }

  resize() {
    const stage = byId('stage');
    this.lanes.width = Math.max(50, stage.clientWidth - byId('gutter').offsetWidth - 14);
    this.lanes.height = Math.max(40, stage.clientHeight);
    this.#layOut();
    this.draw();
  }

  draw() {
    if (!this.isLanes) return;
    this.lanes.draw();
    this.ruler.draw();
    this.gutter.draw();
    this.picture.track.draw();
  }

  measure() {
    const began = performance.now();
    this.draw();
    return performance.now() - began;
  }

  /** Scroll to the row of the selected task. */
  #reveal() {
    const { state } = this;
    const { scene, bar } = state.selected;
    this.#layOut();
    const row = state.rows.showing(scene, scene.bars.lane[bar]);
    if (!row || row.pinned) return;
    const top = this.lanes.top(row);
    const room = this.lanes.height;
    if (top < state.rows.pinnedHeight || top + row.height > room) {
      this.scroller.scrollTop = Math.max(0, row.y - (room - state.rows.pinnedHeight) / 2);
      state.scroll = this.scroller.scrollTop;
    }
    this.#later();
  }

  #announce() {
    const { selected } = this.state;
    byId('said').textContent = selected
      ? shortLines(selected.scene, selected.bar).join('. ').slice(0, 400)
      : '';
  }

  toFinding() {
    this.state.setMode('picture');
    this.picture.nextFinding();
  }

  toSearch() {
    this.state.setMode('lanes');
    byId('query').select();
  }

  foldAll(isFolded) {
    this.state.rows.foldAll(isFolded);
    this.state.changed('rows');
  }

  switchLanguage() {
    switchLanguage();
    this.say();
    this.draw();
    this.picture.draw();
  }

  /** All words outside the side and the picture, in the language that is chosen. */
  say() {
    const { scenes } = this.state;
    document.documentElement.lang = languageName() === 'zh' ? 'zh-Hans' : 'en';
    byId('lanes').setAttribute('aria-label', t('lanes_label'));
    const leftOut = scenes.map((scene) => scene.header.left_out).filter(Boolean);
    byId('left-out').hidden = !leftOut.length;
    byId('left-out').textContent = leftOut.join(' ');
    this.toolbar.draw();
    this.search.draw();
  }
}
