/** The keyboard: what every key does, here and in the help. */

import { button, byId, h } from './dom.js';
import { t } from './words.js';
import { zoomTo } from './pointer.js';

export class Keys {
  constructor(state, page) {
    Object.assign(this, { state, page, help: byId('help') });
    /** Keys of the picture, of the lanes and of both: how they are shown, the word for what they
     *  do, and their actions by key; `⇧` before a key stands for shift. */
    this.ofPicture = this.#pictureKeys(page.picture);
    this.ofLanes = this.#laneKeys();
    this.ofBoth = this.#commonKeys();
    document.addEventListener('keydown', (event) => this.#pressed(event));
  }

  #pictureKeys(picture) {
    const { choice } = picture;
    const end = () => picture.go(picture.lead.steps.count);
    return [
      ['Space', 'key_play', { ' ': () => picture.play() }],
      [
        '← → Home End',
        'key_steps',
        {
          ArrowLeft: () => picture.onward(-1),
          ArrowRight: () => picture.onward(1),
          Home: () => picture.go(0),
          End: end,
        },
      ],
      [
        '⇧← ⇧→',
        'key_little',
        { '⇧ArrowLeft': () => picture.aLittle(-1), '⇧ArrowRight': () => picture.aLittle(1) },
      ],
      ['[ ]', 'key_rank', { '[': () => picture.nextRank(-1), ']': () => picture.nextRank(1) }],
      ['F', 'key_follow', { f: () => picture.followNext() }],
      ['B', 'key_buffers', { b: () => picture.setBuffers(!choice.isBuffers) }],
      ['S', 'key_scale', { s: () => picture.setScale(!picture.byTime) }],
      ['E', 'key_finding', { e: () => picture.nextFinding() }],
    ];
  }

  #laneKeys() {
    const { state, page } = this;
    const nearer = () => state.zoom(0.7);
    const farther = () => state.zoom(1 / 0.7);
    const zoomTask = () => {
      const { selected } = state;
      if (selected) zoomTo(state, selected.scene, selected.bar);
    };
    return [
      ['W S, + −', 'key_zoom', { w: nearer, '+': nearer, '=': nearer, s: farther, '-': farther }],
      ['A D', 'key_pan', { a: () => state.pan(-0.2), d: () => state.pan(0.2) }],
      ['0', 'key_fit', { 0: () => state.fit() }],
      ['← →', 'key_task', { ArrowLeft: () => this.#along(-1), ArrowRight: () => this.#along(1) }],
      ['↑ ↓', 'key_lane', { ArrowUp: () => this.#across(-1), ArrowDown: () => this.#across(1) }],
      ['P', 'key_partner', { p: () => this.#partner() }],
      ['Z, ↵', 'key_zoom_task', { z: zoomTask, Enter: zoomTask }],
      ['E ⇧E', 'key_extend', { e: () => state.extend(1), '⇧e': () => state.extend(-1) }],
      ['N ⇧N', 'key_found', { n: () => page.search.go(1), '⇧n': () => page.search.go(-1) }],
      ['F', 'key_fold', { f: () => this.#ofRank('toggleFold') }],
      [
        '⇧F ⇧U',
        'key_fold_all',
        { '⇧f': () => page.foldAll(true), '⇧u': () => page.foldAll(false) },
      ],
      ['I', 'key_pin', { i: () => this.#ofRank('togglePin') }],
    ];
  }

  #commonKeys() {
    const { state, page } = this;
    const along = (by) => () => state.stepCritical(state.criticalStep + by);
    return [
      ['L', 'key_mode', { l: () => state.toggleMode() }],
      ['C', 'key_critical', { c: () => state.toggleCritical() }],
      [', .', 'key_critical_step', { ',': along(-1), '.': along(1) }],
      ['/', 'key_search', { '/': () => page.toSearch() }],
      ['G', 'key_language', { g: () => page.switchLanguage() }],
      ['T', 'key_theme', { t: () => state.theme.toggle() }],
      ['?', 'key_help', { '?': () => this.toggleHelp() }],
      ['Esc', 'key_escape', { Escape: () => this.#escape() }],
    ];
  }

  #pressed(event) {
    if (event.altKey || event.metaKey) return;
    if (event.ctrlKey && event.key === 'f') this.page.toSearch();
    else if (event.ctrlKey || !this.#isMeant(event) || !this.#act(event)) return;
    event.preventDefault();
  }

  /** False for keys that the element with the focus takes itself. */
  #isMeant({ target, key }) {
    if (target.matches?.('input[type=search]')) return false;
    if (target.matches?.('button, summary') && ['Enter', ' '].includes(key)) return false;
    return !(target.matches?.('input') && key.startsWith('Arrow'));
  }

  /** Do what a key stands for; false where it stands for nothing. */
  #act({ key, shiftKey }) {
    const plain = key.length === 1 ? key.toLowerCase() : key;
    const own = this.page.isLanes ? this.ofLanes : this.ofPicture;
    const actions = Object.assign({}, ...[...own, ...this.ofBoth].map(([, , some]) => some));
    const action = (shiftKey && actions[`⇧${plain}`]) || actions[plain];
    if (!action || (this.help.open && !['?', 'Escape'].includes(key))) return false;
    action();
    return true;
  }

  /** Select the task before or behind the selected one on its stream. */
  #along(by) {
    const { state } = this;
    if (!state.selected) {
      this.#selectFirst();
      return;
    }
    const { scene, bar } = state.selected;
    const lane = scene.bars.lane[bar];
    const next = bar + by;
    if (next >= scene.laneFirst[lane] && next < scene.laneFirst[lane + 1])
      state.select(scene, next);
  }

  /** Select what the lane above or below does at the time of the selected task. */
  #across(by) {
    const { state } = this;
    if (!state.selected) {
      this.#selectFirst();
      return;
    }
    const { scene, bar } = state.selected;
    const middle = (scene.bars.start_us[bar] + scene.bars.end_us[bar]) / 2 + scene.shift;
    const lanes = [...state.rows.pinnedRows, ...state.rows.rows].filter(
      (row) => row.lane >= 0 && row.scene.laneStop[row.lane] > row.scene.laneFirst[row.lane],
    );
    const at = lanes.findIndex((row) => row.scene === scene && row.lane === scene.bars.lane[bar]);
    const row = lanes[at + by];
    if (!row) return;
    const found = row.scene.firstAfter(row.lane, middle - row.scene.shift);
    state.select(row.scene, Math.min(found, row.scene.laneStop[row.lane] - 1));
  }

  #selectFirst() {
    const [scene] = this.state.scenes;
    if (scene.size) this.state.select(scene, scene.laneFirst[0]);
  }

  #partner() {
    const { selected } = this.state;
    const other = selected ? selected.scene.bars.partner[selected.bar] : -1;
    if (other >= 0) this.state.select(selected.scene, other);
  }

  #ofRank(what) {
    const { state } = this;
    const { scene, bar } = state.selected ?? { scene: state.scenes[0], bar: 0 };
    if (!scene.size) return;
    state.rows[what](scene, scene.rankIndex.get(scene.rankOf(bar)));
    state.changed('rows');
  }

  #escape() {
    if (this.help.open) this.toggleHelp();
    else {
      this.state.deselect();
      this.page.picture.deselect();
    }
  }

  toggleHelp() {
    const { help } = this;
    if (help.open) {
      help.close();
      return;
    }
    const group = (word, rows) => [
      h('h3', {}, t(word)),
      h(
        'dl',
        {},
        rows.map(([keys, what]) => [
          h(
            'dt',
            {},
            keys.split(' ').map((key) => h('kbd', {}, key)),
          ),
          h('dd', {}, t(what)),
        ]),
      ),
    ];
    help.setAttribute('aria-label', t('help'));
    const close = button('✕', () => help.close(), { title: t('close'), 'aria-label': t('close') });
    help.replaceChildren(
      h('div', { class: 'help-head' }, h('h2', {}, t('help')), close),
      ...group('to_picture', this.ofPicture),
      ...group('to_lanes', this.ofLanes),
      h('p', { class: 'muted' }, t('help_mouse')),
      ...group('in_both', this.ofBoth),
    );
    help.showModal();
  }
}
