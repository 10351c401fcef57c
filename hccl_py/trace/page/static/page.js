/** The parts of the page, put together: what each change makes draw again. */

import { CriticalView } from './view_critical.js';
import { FindingsView } from './view_findings.js';
import { Gutter } from './gutter.js';
import { Keys } from './keys.js';
import { LaneCanvas } from './lanes.js';
import { LinksView } from './view_links.js';
import { MemoryView } from './view_memory.js';
import { Minimap } from './minimap.js';
import { Panel } from './panel.js';
import { PictureView } from './picture.js';
import { PhasesView } from './view_phases.js';
import { Pointer } from './pointer.js';
import { Ruler } from './ruler.js';
import { SearchBox } from './searchbox.js';
import { TaskView } from './view_task.js';
import { Toolbar } from './toolbar.js';
import { TrafficView } from './view_traffic.js';
import { byId } from './dom.js';
import { languageName, switchLanguage, t } from './words.js';
import { shortLines } from './describe.js';

export class Page {
  constructor(state) {
    this.state = state;
    this.lanes = new LaneCanvas(state, byId('lanes'));
    this.ruler = new Ruler(state, this.lanes, byId('ruler'));
    this.minimap = new Minimap(state, byId('minimap'));
    this.gutter = new Gutter(state, this.lanes, byId('gutter'));
    this.scroller = byId('scroller');
    this.pointer = new Pointer(state, this.lanes, {
      tooltip: byId('tooltip'),
      scroller: this.scroller,
      gutter: byId('gutter'),
    });
    this.memory = new MemoryView(state);
    this.traffic = new TrafficView(state);
    this.views = [
      new TaskView(state),
      new FindingsView(state),
      new CriticalView(state),
      this.memory,
      this.traffic,
      new LinksView(state),
      new PhasesView(state),
    ];
    this.picture = new PictureView(state);
    this.panel = new Panel(state, this.views);
    this.search = new SearchBox(state);
    this.keys = new Keys(state, this);
    this.toolbar = new Toolbar(state, this);
    this.#listen();
    this.#showMode();
    this.say();
  }

  #showMode() {
    byId('app').dataset.mode = this.state.mode;
    this.toolbar.draw();
    this.resize();
    this.picture.draw();
  }

  #listen() {
    const { state } = this;
    state.on('view', () => this.#later('picture'));
    state.on('rows', () => this.#later('rows'));
    state.on('found look cursor', () => this.#later('picture'));
    state.on('selection', () => {
      this.#later('picture');
      if (state.tab === 'task') this.panel.refresh('task');
      this.#announce();
    });
    state.on('cursor', () => this.panel.refresh('memory', 'links'));
    state.on('view', () => this.panel.refresh('links'));
    state.on('look', () => this.toolbar.draw());
    state.on('mode', () => this.#showMode());
    state.on('reveal', () => this.#reveal());
    state.theme.onChange(() => {
      state.changed('look');
      this.draw();
      this.panel.draw();
      this.picture.draw();
    });
    this.scroller.addEventListener('scroll', () => {
      state.scroll = this.scroller.scrollTop;
      this.#later('picture');
    });
    new ResizeObserver(() => this.resize()).observe(byId('stage'));
  }

  /** Draw once before the next picture, however many changes there are until then. */
  #later(what) {
    if (what === 'rows') this.#layOut();
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => {
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
    this.minimap.width = this.lanes.width;
    this.#layOut();
    this.draw();
    this.panel.draw();
  }

  draw() {
    this.lanes.draw();
    this.ruler.draw();
    this.minimap.draw();
    this.gutter.draw();
  }

  measure() {
    const began = performance.now();
    this.draw();
    return performance.now() - began;
  }

  /** Scroll to the row of the selected task. */
  #reveal() {
    const { state } = this;
    const lane = state.scrollTo ?? {
      scene: state.selected.scene,
      lane: state.selected.scene.bars.lane[state.selected.bar],
    };
    state.scrollTo = null;
    this.#layOut();
    const row = state.rows.showing(lane.scene, lane.lane);
    if (!row || row.pinned) return;
    const top = this.lanes.top(row);
    const room = this.lanes.height;
    if (top < state.rows.pinnedHeight || top + row.height > room) {
      this.scroller.scrollTop = Math.max(0, row.y - (room - state.rows.pinnedHeight) / 2);
      state.scroll = this.scroller.scrollTop;
    }
    this.#later('picture');
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

  foldAll(isFolded) {
    this.state.rows.foldAll(isFolded);
    this.state.changed('rows');
  }

  openTab(number) {
    this.state.openTab(this.views[number].name);
  }

  switchLanguage() {
    switchLanguage();
    this.say();
    this.draw();
    this.panel.draw();
    this.picture.draw();
  }

  /** All words outside the views, in the language that is chosen. */
  say() {
    const { scenes } = this.state;
    document.documentElement.lang = languageName() === 'zh' ? 'zh-Hans' : 'en';
    byId('lanes').setAttribute('aria-label', t('lanes_label'));
    byId('minimap').setAttribute('aria-label', t('minimap_label'));
    const leftOut = scenes.map((scene) => scene.header.left_out).filter(Boolean);
    byId('left-out').hidden = !leftOut.length;
    byId('left-out').textContent = leftOut.join(' ');
    this.toolbar.draw();
    this.search.draw();
  }

  memoryHeld() {
    const { kept, count } = this.memory;
    if (!kept) return null;
    return kept
      .state(count)
      .flatMap((segments, buffer) =>
        segments.map((segment) => [
          this.memory.scene.buffers[buffer],
          segment.start,
          segment.stop,
          kept.originsOf(segment.content),
        ]),
      );
  }

  trafficShown() {
    const { cells, size, bytes } = this.traffic.cells ?? {};
    return bytes && { cells, size, bytes: [...bytes] };
  }
}
