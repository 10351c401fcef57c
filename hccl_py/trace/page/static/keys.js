/** The keyboard: what every key does, here and in the help. */

import { byId, h } from './dom.js';
import { t } from './words.js';
import { zoomTo } from './pointer.js';

/** Keys as they are shown, and the word that says what they do. */
const SHOWN = [
  ['Space', 'key_play'],
  ['← → Home End', 'key_steps'],
  ['[ ]', 'key_rank'],
  ['F', 'key_follow'],
  ['E', 'key_finding'],
  ['S', 'key_scale'],
];

/** Keys of the lanes. */
const SHOWN_OF_LANES = [
  ['W S, + −', 'key_zoom'],
  ['A D', 'key_pan'],
  ['0', 'key_fit'],
  ['← →', 'key_task'],
  ['↑ ↓', 'key_lane'],
  ['P', 'key_partner'],
  ['Z, ↵', 'key_zoom_task'],
  ['E ⇧E', 'key_extend'],
  ['C', 'key_critical'],
  [', .', 'key_critical_step'],
  ['/', 'key_search'],
  ['N ⇧N', 'key_found'],
  ['F', 'key_fold'],
  ['⇧F ⇧U', 'key_fold_all'],
  ['I', 'key_pin'],
  ['1 … 7', 'key_tabs'],
  ['L', 'key_mode'],
  ['G', 'key_language'],
  ['T', 'key_theme'],
  ['?', 'key_help'],
  ['Esc', 'key_escape'],
];

export class Keys {
  constructor(state, page) {
    this.state = state;
    this.page = page;
    this.help = byId('help');
    document.addEventListener('keydown', (event) => this.#pressed(event));
  }

  #pressed(event) {
    if (event.altKey || event.metaKey) return;
    const isTyping = event.target.matches?.('input[type=search], select');
    if (event.ctrlKey) {
      if (event.key === 'f') {
        event.preventDefault();
        byId('query').select();
      }
      return;
    }
    if (isTyping) return;
    const isButton = event.target.matches?.('button') && ['Enter', ' '].includes(event.key);
    const isSlider = event.target.matches?.('input') && event.key.startsWith('Arrow');
    if (isButton || isSlider) return;
    const done = this.#act(event.key, event.shiftKey);
    if (done) event.preventDefault();
  }

  /** Do what a key stands for; false where it stands for nothing. */
  #act(key, shift) {
    const { state, page } = this;
    const plain = key.length === 1 ? key.toLowerCase() : key;
    if (state.mode === 'picture' && this.#actOnPicture(plain, shift)) return true;
    if (shift && plain === 'f') page.foldAll(true);
    else if (shift && plain === 'u') page.foldAll(false);
    else if (plain >= '1' && plain <= '7') page.openTab(Number(plain) - 1);
    else {
      const action = {
        w: () => state.zoom(0.7),
        '+': () => state.zoom(0.7),
        '=': () => state.zoom(0.7),
        s: () => state.zoom(1 / 0.7),
        '-': () => state.zoom(1 / 0.7),
        a: () => state.pan(-0.2),
        d: () => state.pan(0.2),
        0: () => state.fit(),
        ArrowLeft: () => this.#along(-1),
        ArrowRight: () => this.#along(1),
        ArrowUp: () => this.#across(-1),
        ArrowDown: () => this.#across(1),
        p: () => this.#partner(),
        z: () => this.#zoomTask(),
        Enter: () => this.#zoomTask(),
        e: () => state.extend(shift ? -1 : 1),
        c: () => state.toggleCritical(),
        ',': () => state.stepCritical(state.criticalStep - 1),
        '.': () => state.stepCritical(state.criticalStep + 1),
        '/': () => byId('query').focus(),
        n: () => page.search.go(shift ? -1 : 1),
        f: () => this.#ofRank('toggleFold'),
        i: () => this.#ofRank('togglePin'),
        l: () => state.setMode(state.mode === 'lanes' ? 'picture' : 'lanes'),
        g: () => page.switchLanguage(),
        t: () => state.theme.toggle(),
        '?': () => this.toggleHelp(),
        Escape: () => this.#escape(),
      }[plain];
      if (!action) return false;
      action();
    }
    return true;
  }

  /** Do what a key stands for while the picture is open. */
  #actOnPicture(plain, shift) {
    const { picture } = this.page;
    const { steps, stage } = picture;
    const arrow = (by) => (shift ? picture.go(steps.place + by * 0.1) : picture.onward(by));
    const action = {
      ' ': () => picture.play(),
      ArrowLeft: () => arrow(-1),
      ArrowRight: () => arrow(1),
      Home: () => picture.go(0),
      End: () => picture.go(steps.count),
      '[': () => picture.chooseRank((stage.rank ?? 0) - 1),
      ']': () => picture.chooseRank(((stage.rank ?? -1) + 1) % steps.nodes),
      f: () => picture.followNext(),
      e: () => picture.nextFinding(),
      s: () => picture.setScale(!steps.byTime),
      Escape: () => picture.deselect(),
    }[plain];
    if (!action || this.help.open) return false;
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

  #zoomTask() {
    const { selected } = this.state;
    if (selected) zoomTo(this.state, selected.scene, selected.bar);
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
    else this.state.deselect();
  }

  toggleHelp() {
    if (this.help.open) {
      this.help.close();
      return;
    }
    this.help.setAttribute('aria-label', t('help'));
    this.help.replaceChildren(
      h(
        'div',
        { class: 'help-head' },
        h('h2', {}, t('help')),
        h(
          'button',
          {
            type: 'button',
            title: t('close'),
            'aria-label': t('close'),
            onclick: () => this.help.close(),
          },
          '✕',
        ),
      ),
      h('p', {}, t('help_mouse')),
      h(
        'dl',
        {},
        [...SHOWN, ...SHOWN_OF_LANES].map(([keys, word]) => [
          h(
            'dt',
            {},
            keys.split(' ').map((key) => h('kbd', {}, key)),
          ),
          h('dd', {}, t(word)),
        ]),
      ),
    );
    this.help.showModal();
  }
}
