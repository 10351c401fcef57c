/** The track of steps: where the picture is; above the lanes' time, what stretch of it they show. */

import { byId, fitted, placeOn, whileDragged } from './dom.js';
import { inkOfStep } from './inks.js';
import { mapped } from './against.js';

const ROW = 18;

export class Track {
  constructor(state, picture) {
    Object.assign(this, { state, picture, canvas: byId('ticks') });
    this.canvas.addEventListener('pointerdown', (event) => this.#drag(event));
    this.canvas.addEventListener('dblclick', () => this.#isOverview && state.fit());
  }

  get #isOverview() {
    return this.state.mode === 'lanes';
  }

  /** The begin and the end of what the track shows: of time, or of the leading steps. */
  get #range() {
    const { view } = this.state;
    return this.#isOverview ? [view.least, view.most] : [0, this.picture.end || 1];
  }

  #x(at) {
    const [least, most] = this.#range;
    return ((at - least) / (most - least)) * this.width;
  }

  #at(event) {
    const [least, most] = this.#range;
    return least + (placeOn(this.canvas, event).x / this.width) * (most - least);
  }

  /** Over the lanes, choose a stretch of time, or move the one that is shown; else go there. */
  #drag(event) {
    const { state, picture } = this;
    const began = this.#at(event);
    const { from, to, least, most } = state.view;
    const isInside = began > from && began < to && to - from < 0.98 * (most - least);
    const moved = (now) => {
      const at = this.#at(now);
      if (!this.#isOverview) picture.goTo(at);
      else if (isInside) state.show(from + at - began, to + at - began);
      else if (Math.abs(this.#x(at) - this.#x(began)) > 3)
        state.show(Math.min(at, began), Math.max(at, began));
    };
    moved(event);
    whileDragged(event, moved);
  }

  draw() {
    this.width = byId('track').clientWidth;
    if (!this.width) return;
    const { stages } = this.picture;
    const g = fitted(this.canvas, this.width, ROW * stages.length);
    g.fillStyle = this.state.theme.colours.faint;
    g.fillRect(0, 0, this.width, ROW * stages.length);
    stages.forEach((stage, row) => this.#drawSteps(g, stage, row));
    if (this.#isOverview) this.#drawWindow(g, ROW * stages.length);
  }

  #drawSteps(g, stage, row) {
    const { picture } = this;
    const { colours } = this.state.theme;
    const { list, now } = stage.steps;
    const wrong = new Set(picture.errors.filter((e) => e.stage === stage).map((e) => e.step));
    const y = row * ROW;
    list.forEach((step, k) => {
      const ends =
        this.#isOverview || picture.byTime
          ? [step.begin + stage.scene.shift, step.end + stage.scene.shift]
          : [k, k + 1].map((place) => mapped(picture.knots[row], place, 1));
      const [x, stop] = ends.map((at) => this.#x(at));
      const wide = Math.max(1, stop - x - 1);
      g.fillStyle = wrong.has(k + 1) ? colours.bad : inkOfStep(step);
      g.fillRect(x, y + 2, wide, 14);
      if (k + 1 === now) {
        g.strokeStyle = colours.text;
        g.lineWidth = 2;
        g.strokeRect(x + 1, y + 1, Math.max(1, wide - 2), 16);
      }
      if (wide < 12) return;
      g.fillStyle = '#fff';
      g.font = '11px system-ui, sans-serif';
      const name = wide > 8 * step.label.length + 10 && step.label ? step.label : k + 1;
      g.fillText((wrong.has(k + 1) ? '✗ ' : '') + name, x + 4, y + 13);
    });
  }

  /** The stretch of time that the lanes show. */
  #drawWindow(g, height) {
    const { view, theme } = this.state;
    const [from, to] = [this.#x(view.from), this.#x(view.to)];
    g.fillStyle = theme.colours.background;
    g.globalAlpha = 0.65;
    g.fillRect(0, 0, from, height);
    g.fillRect(to, 0, this.width - to, height);
    g.globalAlpha = 1;
    g.strokeStyle = theme.colours.accent;
    g.lineWidth = 1.5;
    g.strokeRect(from + 0.75, 0.75, Math.max(3, to - from) - 1.5, height - 1.5);
    g.fillStyle = theme.colours.cursor;
    g.fillRect(this.#x(this.state.cursor), 0, 1, height);
  }
}
