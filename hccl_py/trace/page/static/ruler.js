/** Marks of time above the lanes; a click there puts the cursor. */

import { fitted, placeOn, whileDragged } from './dom.js';
import { formatTime, niceStep } from './format.js';

const HEIGHT = 22;

export class Ruler {
  constructor(state, lanes, canvas) {
    this.state = state;
    this.lanes = lanes;
    this.canvas = canvas;
    canvas.addEventListener('pointerdown', (event) => {
      const put = (moved) => {
        const at = lanes.time(placeOn(canvas, moved).x);
        state.moveCursor(Math.min(Math.max(at, 0), state.view.most));
      };
      put(event);
      whileDragged(event, put);
    });
  }

  draw() {
    const { lanes, state } = this;
    const { colours } = state.theme;
    const context = fitted(this.canvas, lanes.width, HEIGHT);
    context.fillStyle = colours.panel;
    context.fillRect(0, 0, lanes.width, HEIGHT);
    context.font = '11px system-ui, sans-serif';
    context.textBaseline = 'middle';
    const step = niceStep(state.view.span, lanes.width / 110);
    for (let k = Math.ceil(state.view.from / step); k * step <= state.view.to; k++) {
      const x = Math.round(lanes.x(k * step));
      context.fillStyle = colours.line;
      context.fillRect(x, 0, 1, HEIGHT);
      context.fillStyle = colours.muted;
      context.fillText(k === 0 ? '0' : formatTime(k * step, state.view.span), x + 4, HEIGHT / 2);
    }
    this.#drawCursor(context, colours);
  }

  #drawCursor(context, colours) {
    const { lanes, state } = this;
    const x = lanes.x(state.cursor);
    if (x < 0 || x > lanes.width) return;
    const text = formatTime(state.cursor, state.view.span);
    const width = context.measureText(text).width + 8;
    const left = Math.min(Math.max(0, x - width / 2), lanes.width - width);
    context.fillStyle = colours.cursor;
    context.fillRect(left, 3, width, HEIGHT - 6);
    context.fillRect(Math.round(x), HEIGHT - 4, 1, 4);
    context.fillStyle = colours.background;
    context.fillText(text, left + 4, HEIGHT / 2);
  }
}
