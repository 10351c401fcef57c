/** The steps of a schedule and where in them the picture is: at a share of a step, or at a time. */

import { firstAbove } from './scene.js';
import { t } from './words.js';

export const READ = 1;
export const REDUCE = 2;
export const RDMA = 4;

/** The share of a step after which all that travels in it has arrived. */
const ARRIVED = 0.92;

export class Steps {
  constructor(scene) {
    const { table, moves, share } = scene.steps;
    Object.assign(this, { scene, table, moves, share, list: table.list, count: table.list.length });
    this.nodes = table.names.length;
    const { cells } = table;
    this.cells = cells && {
      ...cells,
      holds: cells.holds.map((ranks) => ranks.map(bits)),
      wanted: cells.wanted.map(bits),
      parts: cells.parts.map(bits),
    };
    this.byTime = false;
    this.at = Math.min(this.count, 0.5);
  }

  /** The step that is shown, from 1 on; 0 where there is none. */
  get now() {
    if (!this.byTime) return Math.min(this.count, Math.floor(this.at) + 1);
    return Math.max(this.#numberAt(this.at), Math.min(1, this.count));
  }

  /** The last step that has begun at a moment; 0 before the first. */
  #numberAt(time) {
    return this.list.reduce((found, { begin }, k) => (begin <= time ? k + 1 : found), 0);
  }

  get end() {
    return this.byTime ? this.scene.total : this.count;
  }

  get isBefore() {
    return !this.byTime && this.at === 0;
  }

  get isOver() {
    return this.at >= this.end;
  }

  /** The place in steps, whatever the scale. */
  get place() {
    return this.byTime ? this.placeOf(this.at) : this.at;
  }

  /** The moment in microseconds. */
  get time() {
    return this.byTime ? this.at : this.timeOf(this.at);
  }

  /** The place in steps at a moment. */
  placeOf(time) {
    const number = this.#numberAt(time);
    if (!number) return 0;
    const { begin, end } = this.list[number - 1];
    return number - 1 + Math.min(1, (time - begin) / (end - begin || 1));
  }

  timeOf(place) {
    const number = Math.min(this.count, Math.floor(place) + 1);
    if (!number) return 0;
    const { begin, end } = this.list[number - 1];
    return place <= 0 ? 0 : begin + (end - begin) * (place - number + 1);
  }

  set(at, byTime) {
    Object.assign(this, { at: Math.max(0, Math.min(at, byTime ? Infinity : this.count)), byTime });
  }

  movesOf(number) {
    const { step } = this.moves;
    const first = firstAbove(step, number - 1, 0, step.length);
    const stop = firstAbove(step, number, first, step.length);
    return Array.from({ length: stop - first }, (_, k) => first + k);
  }

  stepOf(bar) {
    return this.scene.steps.ofBar[bar];
  }

  /** The move that a task is part of; undefined for none. */
  moveOf(bar) {
    const { ofBar, nodeOf } = this.scene.steps;
    const { src_rank, dst_rank } = this.scene.bars;
    const [from, to] = [nodeOf(src_rank[bar]), nodeOf(dst_rank[bar])];
    const { source, target } = this.moves;
    return this.movesOf(ofBar[bar]).find((k) => source[k] === from && target[k] === to);
  }

  /** The first task of a move. */
  barOf(move) {
    const { ofBar } = this.scene.steps;
    return ofBar.findIndex((step, k) => step === this.moves.step[move] && this.moveOf(k) === move);
  }

  /** The moves and nodes of this step that are on the critical path, nodes with their time on it. */
  critical() {
    const { scene, now } = this;
    const { bar, begin_us, end_us } = scene.critical;
    const { begin, end } = this.list[now - 1] ?? { begin: 0, end: 0 };
    const [moves, nodes] = [new Set(), new Map()];
    for (let k = firstAbove(end_us, begin, 0, bar.length); begin_us[k] < end; k++) {
      const node = scene.steps.nodeOf(scene.rankOf(bar[k]));
      const time = Math.min(end, end_us[k]) - Math.max(begin, begin_us[k]);
      nodes.set(node, (nodes.get(node) ?? 0) + time / (end - begin));
      if (scene.steps.ofBar[bar[k]] === now) moves.add(this.moveOf(bar[k]));
    }
    return { moves, nodes };
  }

  /** How far a move is: below 0 before it begins, 1 when it has arrived. */
  progress(move) {
    const { step, begin_us, end_us } = this.moves;
    if (this.byTime) {
      const [begin, end] = [begin_us[move], end_us[move]];
      return this.at < begin ? -1 : this.at >= end ? 1 : (this.at - begin) / (end - begin);
    }
    const share = this.at - (step[move] - 1);
    return share <= 0 ? -1 : Math.min(1, share / ARRIVED);
  }

  /** The columns of the cells that a move carries. */
  columnsOf(move) {
    const { cells } = this;
    if (!cells) return [];
    return [...Array(cells.columns).keys()].filter((c) => count(cells, cells.parts[move], c) > 0);
  }

  /** The cells that a rank holds now, and those of them that are new. */
  held(rank) {
    const { cells, moves } = this;
    if (this.byTime) {
      let now = cells.holds[0][rank];
      let fresh = 0n;
      for (let k = 0; k < moves.step.length; k++) {
        if (moves.target[k] !== rank || moves.end_us[k] > this.at) continue;
        now |= cells.parts[k];
        if (moves.step[k] === this.now) fresh |= cells.parts[k];
      }
      return { now, fresh };
    }
    const done = Math.min(this.count, Math.floor(this.at + 1 - ARRIVED));
    const now = cells.holds[done][rank];
    if (!done || this.at > done + 0.02) return { now, fresh: 0n };
    let fresh = now & ~cells.holds[done - 1][rank];
    for (const k of this.movesOf(done)) if (moves.target[k] === rank) fresh |= cells.parts[k];
    return { now, fresh: fresh & now };
  }

  /** The parts that are where they shall be in the end, of all of them. */
  arrived() {
    const { cells } = this;
    if (!cells) return { all: 0, text: '' };
    let [have, all] = [0, 0];
    cells.wanted.forEach((wanted, rank) => {
      const { now } = this.held(rank);
      for (let column = 0; column < cells.columns; column++) {
        const need = count(cells, wanted, column);
        const has = count(cells, wanted & now, column);
        all += cells.reduces ? need > 0 : need;
        have += cells.reduces ? need > 0 && has === need : has;
      }
    });
    return { all, text: t(cells.reduces ? 'sums_arrived' : 'blocks_arrived', { have, all }) };
  }

  /** The part of all that a node gets that has come. */
  shareOf(node) {
    const at = Math.min(this.count, this.place);
    const of = (number) => (number ? this.share[(number - 1) * this.nodes + node] : 0);
    const done = Math.floor(at);
    return of(done) + (of(Math.min(this.count, done + 1)) - of(done)) * (at - done);
  }
}

function bits(text) {
  return BigInt(`0x${text}`);
}

/** The number of cells of a set in a column. */
export function count(cells, set, column) {
  let found = 0;
  for (let row = 0; row < cells.rows; row++) {
    found += Number((set >> BigInt(row * cells.columns + column)) & 1n);
  }
  return found;
}
