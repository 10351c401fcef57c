/** The stage: nodes as they are joined, with what they hold; arrows of a step, and what travels. */

import { ADDS, MOVES, fontOf, inkOf, inkOfStep, inkOn } from './inks.js';
import { Buffers } from './buffers.js';
import { RDMA, REDUCE, Steps, count } from './steps.js';
import { curveOf, farFrom, pointOf } from './curves.js';
import { fitted } from './dom.js';
import { t } from './words.js';

const MANY = 40; // arrows of which those of one rank alone stand out

export class Stage {
  /** @param {object} choice the chosen `rank` and `chunk`, the node `hovered`, `isBuffers` */
  constructor(state, scene, canvas, choice) {
    Object.assign(this, { state, scene, canvas, choice, steps: new Steps(scene) });
    this.buffers = scene.memory ? new Buffers(state, scene) : null;
    this.marks = { nodes: new Set(), moves: new Set(), memory: [] };
    this.hot = [];
  }

  /** True where buffers are drawn: of all ranks, or of the ranks of the chosen server. */
  get isBuffers() {
    return this.choice.isBuffers && this.buffers !== null;
  }

  /** The ranks of the chosen server, where buffers of ranks are drawn in the place of servers. */
  get #ranks() {
    if (!this.isBuffers || this.steps.table.noun === 'rank') return null;
    const { ranks, steps } = this.scene;
    return [...ranks].filter((rank) => steps.nodeOf(rank) === (this.choice.server ?? 0));
  }

  resize(width, height) {
    Object.assign(this, { width, height });
    const ranks = this.#ranks;
    this.ranks = ranks;
    const seats = ranks ? gridOf(ranks.length) : this.steps.table.seats;
    const upright = seats.kind === 'rows' && width < 700;
    const across = upright ? Math.max(1, seats.boxes.length) : Math.max(1, seats.across);
    const nodes = ranks ? ranks.length : this.steps.nodes;
    const down = upright ? seats.across : Math.ceil(nodes / across);
    let [wide, high] = [(width - 20) / across - 12, (height - 20) / down - 16];
    if (seats.kind === 'ring') {
      wide = Math.min(width / (width < 600 ? 4.5 : 6.4), nodes <= 4 ? 230 : nodes <= 8 ? 160 : 92);
      high = Math.min(height / (nodes <= 4 ? 3.4 : nodes <= 8 ? 5.3 : 7), 124);
    } else if (!upright && !ranks) high *= seats.kind === 'rows' ? 0.55 : 0.75;
    if (upright) wide -= 40;
    if (this.steps.cells?.rows === 1 && !this.isBuffers) high = Math.min(high, wide * 0.42 + 20);
    Object.assign(this, {
      upright,
      wide: Math.min(wide, this.isBuffers ? 420 : 230),
      high: Math.max(14, Math.min(high, this.isBuffers ? 200 : 150)),
    });
    const pad = seats.kind === 'ring' ? [this.wide / 2 + 14, this.high / 2 + 10] : [10, 10];
    this.at = Array.from({ length: nodes }, (_, k) => {
      const [u, v] = upright ? [seats.y[k], seats.x[k]] : [seats.x[k], seats.y[k]];
      return [pad[0] + u * (width - 2 * pad[0]), pad[1] + v * (height - 2 * pad[1])];
    });
  }

  draw() {
    const { steps } = this;
    const g = fitted(this.canvas, this.width, this.height);
    Object.assign(this, { g, colours: this.state.theme.colours, hot: [] });
    g.fillStyle = this.colours.background;
    g.fillRect(0, 0, this.width, this.height);
    if (this.ranks) {
      this.ranks.forEach((rank, k) => this.#card(rank, this.at[k], true));
      return;
    }
    g.lineCap = 'round';
    this.#boxes();
    this.path = this.state.critical ? steps.critical() : null;
    const moves = steps.isBefore ? [] : steps.movesOf(steps.now);
    const between = moves.filter((k) => steps.moves.source[k] !== steps.moves.target[k]);
    this.crowded = between.length > MANY || steps.table.noun !== 'rank';
    between.forEach((move) => this.#arrow(move));
    const busy = new Set(moves.flatMap((k) => [steps.moves.source[k], steps.moves.target[k]]));
    for (let node = 0; node < steps.nodes; node++) this.#card(node, this.at[node], busy.has(node));
    between.forEach((move) => this.#token(move));
    g.globalAlpha = 1;
  }

  #boxes() {
    const { g, colours, width, height, upright } = this;
    g.font = fontOf(12, 600);
    g.textAlign = 'left';
    for (const box of this.steps.table.seats.boxes) {
      const [, top, , bottom] = box;
      const [x, y] = upright ? [top * width, 2] : [2, top * height];
      g.strokeStyle = colours.line;
      g.setLineDash([5, 4]);
      this.#round(
        x + 2,
        y + 2,
        (upright ? (bottom - top) * width : width) - 6,
        (upright ? height : (bottom - top) * height) - 6,
        9,
      );
      g.stroke();
      g.setLineDash([]);
      g.fillStyle = colours.muted;
      g.fillText(box[4], x + 10, y + 16);
    }
  }

  #round(x, y, width, height, radius) {
    this.g.beginPath();
    this.g.roundRect(x, y, width, height, radius);
  }

  // ---- arrows and tokens ----

  /** How strongly a move is drawn: 0 hardly, 1 as all others, 2 as one that stands out. */
  #weight(move) {
    const { source, target } = this.steps.moves;
    const { chunk } = this.choice;
    const pick = this.choice.hovered ?? this.choice.rank;
    if (chunk !== null && !this.steps.columnsOf(move).includes(chunk)) return 0;
    if (pick !== null) return source[move] === pick || target[move] === pick ? 2 : 0;
    if (!this.crowded || chunk !== null) return 1;
    const { noun, leads } = this.steps.table;
    return (noun === 'rank' ? leads.includes(source[move]) : source[move] === 0) ? 2 : 0.5;
  }

  curve(move) {
    const { source, target } = this.steps.moves;
    return curveOf(this, source[move], target[move]);
  }

  #arrow(move) {
    const { g, colours, steps } = this;
    const { kind, bytes } = steps.moves;
    const weight = this.#weight(move);
    const [from, control, to] = this.curve(move);
    const columns = steps.columnsOf(move);
    const isOver = steps.progress(move) >= 1;
    const isBad = this.marks.moves.has(move);
    if (this.path?.moves.has(move)) this.#stroke(from, control, to, colours.critical, 7);
    g.globalAlpha = (weight === 0 ? 0.07 : weight === 0.5 ? 0.22 : 0.95) * (isOver ? 0.45 : 1);
    g.strokeStyle = g.fillStyle = isBad
      ? colours.bad
      : columns.length === 1
        ? inkOf(columns[0])
        : weight === 2
          ? colours.accent
          : colours.muted;
    const load =
      steps.table.noun === 'rank' ? 0 : (3 * bytes[move]) / Math.max(1, this.#most(move));
    g.lineWidth = (weight >= 1 ? 2.2 : 1) + load;
    g.setLineDash(kind[move] & RDMA && weight >= 1 ? [6, 4] : []);
    this.#stroke(from, control, to, g.strokeStyle, g.lineWidth);
    g.setLineDash([]);
    if (weight >= 1) {
      const turn = Math.atan2(to[1] - control[1], to[0] - control[0]);
      g.beginPath();
      g.moveTo(to[0] + 4 * Math.cos(turn), to[1] + 4 * Math.sin(turn));
      for (const by of [0.42, -0.42])
        g.lineTo(to[0] - 9 * Math.cos(turn + by), to[1] - 9 * Math.sin(turn + by));
      g.fill();
    }
    g.globalAlpha = 1;
    this.hot.push({ kind: 'move', move, curve: [from, control, to] });
  }

  #stroke(from, control, to, colour, width) {
    const { g } = this;
    [g.strokeStyle, g.lineWidth] = [colour, width];
    g.beginPath();
    g.moveTo(...from);
    g.quadraticCurveTo(...control, ...to);
    g.stroke();
  }

  /** The most bytes that a move of the same step has. */
  #most(move) {
    const { step, bytes } = this.steps.moves;
    if (this.mostOf !== step[move]) {
      this.mostOf = step[move];
      this.mostBytes = this.steps
        .movesOf(step[move])
        .reduce((most, k) => Math.max(most, bytes[k]), 0);
    }
    return this.mostBytes;
  }

  /** The chunks of a move, on their way. */
  #token(move) {
    const { g, colours, steps } = this;
    const part = steps.progress(move);
    const weight = this.#weight(move);
    if (part < 0 || part >= 1 || weight < 1) return;
    const [x, y] = pointOf(this.curve(move), 0.12 + 0.76 * part);
    const columns = steps.columnsOf(move).slice(0, 8);
    const wide = columns.length > 1 ? Math.min(this.crowded ? 20 : 44, columns.length * 9) : 18;
    const high = this.crowded ? 9 : 15;
    g.fillStyle = colours.background;
    g.strokeStyle = colours.text;
    g.lineWidth = 1;
    this.#round(x - wide / 2 - 2, y - high / 2 - 2, wide + 4, high + 4, 4);
    g.fill();
    g.stroke();
    const adds = steps.moves.kind[move] & REDUCE;
    if (!columns.length) {
      g.fillStyle = adds ? ADDS : MOVES;
      g.fillRect(x - wide / 2, y - high / 2, wide, high);
    }
    columns.forEach((column, k) => {
      g.fillStyle = inkOf(column);
      g.fillRect(
        x - wide / 2 + (k * wide) / columns.length,
        y - high / 2,
        wide / columns.length - 0.6,
        high,
      );
    });
    if (columns.length === 1 && high > 12)
      this.#letter((adds ? '+' : '') + this.name(columns[0]), columns[0], x, y + 4, 11);
  }

  name(column) {
    const { cells } = this.steps;
    return String(cells.owners ? cells.sources[column] : column);
  }

  #letter(text, column, x, y, size) {
    const { g } = this;
    g.fillStyle = inkOn(column);
    g.font = fontOf(size);
    g.textAlign = 'center';
    g.fillText(text, x, y);
  }

  // ---- cards ----

  #card(node, at, isBusy) {
    const { g, colours, steps, wide, high } = this;
    const [x, y] = [at[0] - wide / 2, at[1] - high / 2];
    const noun = this.ranks ? 'rank' : steps.table.noun;
    const isBad = noun === steps.table.noun && this.marks.nodes.has(node);
    const isChosen = this.choice.rank === node;
    this.#round(x, y, wide, high, 6);
    g.fillStyle = colours.panel;
    g.fill();
    g.strokeStyle = isBad ? colours.bad : isChosen ? colours.accent : colours.line;
    g.lineWidth = isBad ? 3 : isChosen ? 2.6 : 1;
    g.setLineDash(isBusy || isBad ? [] : [3, 3]);
    g.stroke();
    g.setLineDash([]);
    this.hot.push({ kind: 'card', node, x, y, wide, high });
    const top = high > 30 && wide > 24 ? 17 : 3;
    if (top > 3) {
      g.fillStyle = isBad ? colours.bad : colours.text;
      g.font = fontOf(wide < 60 ? 10 : 12);
      g.textAlign = 'left';
      const name = noun === steps.table.noun ? steps.table.names[node] : String(node);
      g.fillText(
        (isBad ? '✗ ' : '') + (wide < 78 ? name : t(`node_${noun}`, { name })),
        x + 6,
        y + 13,
      );
    }
    const pad = wide < 60 ? 3 : 6;
    const box = [x + pad, y + top, wide - 2 * pad, high - top - pad];
    if (this.path?.nodes.has(node)) {
      g.fillStyle = colours.critical;
      g.fillRect(x + 3, y + high - 3, (wide - 6) * this.path.nodes.get(node), 3);
    }
    if (this.isBuffers) this.hot.push(...this.buffers.draw(g, node, box, this.marks.memory));
    else if (steps.cells) this.#cells(node, ...box);
    else this.#share(node, ...box);
  }

  #share(node, x, y, width, height) {
    const { g } = this;
    const share = this.steps.shareOf(node);
    g.fillStyle = this.colours.faint;
    g.fillRect(x, y, width, height);
    g.fillStyle = inkOf(2);
    g.fillRect(x, y + height * (1 - share), width, height * share);
    const step = this.steps.list[this.steps.now - 1];
    if (step?.inside.length && !this.steps.isBefore) this.#inside(step, x, y, width, height);
  }

  /** The devices of a server on a circle, and what moves between them. */
  #inside(step, x, y, width, height) {
    const { g, colours, steps } = this;
    const { inside } = step;
    const { devices } = steps.table;
    const at = (k) => [
      x + width * (0.5 + 0.4 * Math.sin((2 * Math.PI * k) / devices)),
      y + height * (0.5 - 0.4 * Math.cos((2 * Math.PI * k) / devices)),
    ];
    const part = steps.isOver ? 1 : steps.place % 1;
    g.strokeStyle = inkOfStep(step);
    g.lineWidth = 1.2;
    for (const [source, target] of inside) {
      if (inside.length > MANY && source) continue; // the first device stands for the others
      const [a, b] = [at(source), at(target)];
      g.beginPath();
      g.moveTo(...a);
      g.lineTo(...b);
      g.stroke();
      g.fillStyle = colours.accent;
      g.fillRect(a[0] + (b[0] - a[0]) * part - 2, a[1] + (b[1] - a[1]) * part - 2, 4, 4);
    }
    g.fillStyle = colours.text;
    for (let k = 0; k < devices; k++) g.fillRect(at(k)[0] - 1.5, at(k)[1] - 1.5, 3, 3);
  }

  #cells(rank, x, y, width, height) {
    const { g, colours, steps } = this;
    const { cells } = steps;
    const { now, fresh } = steps.held(rank);
    const [wide, high] = [width / cells.columns, height / cells.rows];
    const gap = wide > 5 ? 1 : 0.4;
    for (let column = 0; column < cells.columns; column++) {
      const left = x + column * wide;
      const found = count(cells, now, column);
      const isWhole = found === cells.rows;
      g.globalAlpha = (this.choice.chunk ?? column) === column ? 1 : 0.13;
      g.fillStyle = colours.faint;
      g.fillRect(left, y, wide - gap, height);
      g.fillStyle = inkOf(column);
      for (let row = 0; row < cells.rows; row++) {
        if (!((now >> BigInt(row * cells.columns + column)) & 1n)) continue;
        const line =
          isWhole && cells.reduces ? high + 0.3 : Math.max(high - (high > 4 ? 1 : 0.3), 0.8);
        g.fillRect(left, y + row * high, wide - gap, line);
      }
      if (count(cells, fresh, column)) {
        g.strokeStyle = colours.text;
        g.lineWidth = 1.6;
        g.strokeRect(left - 0.3, y - 0.3, wide - gap + 0.6, height + 0.6);
      }
      if (wide > 13 && height > 12 && (cells.rows === 1 ? found : isWhole && cells.reduces)) {
        const text = cells.rows === 1 ? this.name(column) : 'Σ';
        this.#letter(
          text,
          column,
          left + (wide - gap) / 2,
          y + height / 2 + 4.5,
          Math.min(13, wide * 0.7),
        );
      }
      g.globalAlpha = 1;
      this.hot.push({ kind: 'cell', node: rank, column, found, x: left, y, wide, high: height });
    }
  }

  /** What lies at a point: bytes, a cell, a card, or a move; null for nothing. */
  hit({ x, y }) {
    const inside = (h) => x >= h.x && x <= h.x + h.wide && y >= h.y && y <= h.y + h.high;
    for (const kind of ['bytes', 'cell', 'card']) {
      const found = this.hot.find((h) => h.kind === kind && inside(h));
      if (found) return found;
    }
    let [best, near] = [null, 8];
    for (const h of this.hot) {
      const far = h.kind === 'move' ? farFrom(h.curve, x, y) : Infinity;
      if (far < near) [best, near] = [h, far];
    }
    return best;
  }
}

/** Seats in rows, as many across as down. */
function gridOf(count) {
  const across = Math.ceil(Math.sqrt(count));
  const down = Math.ceil(count / across);
  const places = Array.from({ length: count }, (_, k) => k);
  const x = places.map((k) => ((k % across) + 0.5) / across);
  const y = places.map((k) => (Math.floor(k / across) + 0.5) / down);
  return { kind: 'grid', across, x, y, boxes: [] };
}
