/** The user's view: one place that all parts of the page read and are told changes of. */

import { Rows } from './rows.js';
import { View } from './view.js';

export class State {
  /** @param {import('./scene.js').Scene[]} scenes one, or two that are compared */
  constructor(scenes, theme) {
    this.scenes = scenes;
    this.theme = theme;
    this.view = new View(Math.max(...scenes.map((scene) => scene.total)));
    this.rows = new Rows(scenes);
    /** The selected task, or null: {scene, bar}. */
    this.selected = null;
    this.hovered = null;
    /** Steps of dependencies that are drawn from the selected task. */
    this.depth = 1;
    /** The moment that memory is shown at; of the common axis. */
    this.cursor = 0;
    this.critical = false;
    this.criticalStep = -1;
    this.found = null;
    /** 'picture' or 'lanes': the view that is open. */
    this.mode = 'picture';
    this.scroll = 0;
    this.listeners = new Map();
  }

  /** Call `listener` after changes of a kind: view, rows, selection, cursor, found, look, mode, picture. */
  on(kinds, listener) {
    for (const kind of kinds.split(' ')) {
      this.listeners.set(kind, [...(this.listeners.get(kind) ?? []), listener]);
    }
  }

  changed(kind) {
    (this.listeners.get(kind) ?? []).forEach((listener) => listener());
  }

  zoom(factor, at) {
    this.view.zoom(factor, at);
    this.changed('view');
  }

  pan(share) {
    this.view.pan(this.view.span * share);
    this.changed('view');
  }

  fit() {
    this.view.fit();
    this.changed('view');
  }

  show(from, to) {
    this.view.set(from, to);
    this.changed('view');
  }

  /** Select a task and, unless told otherwise, bring it into sight. */
  select(scene, bar, { reveal = true, keepStep = false } = {}) {
    this.selected = { scene, bar };
    this.depth = 1;
    if (!keepStep) this.criticalStep = -1;
    const { bars } = scene;
    this.cursor = scene.endOf(bar);
    if (reveal) {
      this.rows.uncover(scene, bars.lane[bar]);
      this.view.reveal(bars.start_us[bar] + scene.shift, bars.end_us[bar] + scene.shift);
      this.changed('rows');
      this.changed('view');
      this.changed('reveal');
    }
    this.changed('selection');
    this.changed('cursor');
  }

  deselect() {
    this.selected = null;
    this.changed('selection');
  }

  extend(by) {
    this.depth = Math.min(64, Math.max(1, this.depth + by));
    this.changed('selection');
  }

  moveCursor(at) {
    this.cursor = at;
    this.changed('cursor');
  }

  toggleCritical() {
    this.critical = !this.critical;
    this.changed('look');
  }

  /** Go to a step of the critical path of the first scene. */
  stepCritical(step) {
    const [scene] = this.scenes;
    const count = scene.critical.bar.length;
    if (!count) return;
    this.criticalStep = Math.min(count - 1, Math.max(0, step));
    this.critical = true;
    this.select(scene, scene.critical.bar[this.criticalStep], { keepStep: true });
    this.changed('look');
  }

  setMode(mode) {
    this.mode = mode;
    this.changed('mode');
  }

  toggleMode() {
    this.setMode(this.mode === 'lanes' ? 'picture' : 'lanes');
  }

  /** Select a task in the lanes. */
  goToTask(scene, bar) {
    this.setMode('lanes');
    if (bar >= 0) this.select(scene, bar);
  }

  /** Move the second schedule so that what lies at `second` there lies at `first` here. */
  align(first, second) {
    const other = this.scenes[1];
    other.shift = first - second;
    const least = Math.min(0, other.shift);
    this.view.widen(least, Math.max(this.scenes[0].total, other.total + other.shift));
    this.changed('view');
    this.changed('selection');
  }
}
