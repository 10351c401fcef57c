/** The contents of ranks' memory after some of its changes. */

import { firstAbove } from './scene.js';

export class Memory {
  constructor(scene) {
    this.scene = scene;
    this.ranks = new Map();
    this.rows = new Map();
    scene.memory.rank.forEach((rank, k) => {
      if (!this.rows.has(rank)) this.rows.set(rank, []);
      this.rows.get(rank).push(k);
    });
    /** The bytes of every buffer that are used at any rank. */
    this.used = scene.buffers.map(() => 0);
    scene.memory.buffer.forEach((buffer, k) => {
      this.used[buffer] = Math.max(this.used[buffer], scene.memory.stop[k]);
    });
  }

  of(rank) {
    if (!this.ranks.has(rank))
      this.ranks.set(rank, new RankMemory(this.scene, rank, this.rows.get(rank) ?? []));
    return this.ranks.get(rank);
  }

  originsOf(content) {
    return content < 0 ? [] : this.scene.memory.origins[content];
  }

  /** The moment of the next change after another moment, or of the last one before it, of a rank
   *  or of all; null where there is none. */
  beside(at, by, rank) {
    const { at_us, bar } = this.scene.memory;
    let best = null;
    for (const k of rank === null ? at_us.keys() : (this.rows.get(rank) ?? [])) {
      const time = bar[k] < 0 ? -1 : at_us[k];
      if (by > 0 ? time <= at + 1e-9 : time >= at - 1e-9) continue;
      if (best === null || (by > 0 ? time < best : time > best)) best = time;
    }
    return best;
  }
}

class RankMemory {
  constructor(scene, rank, rows) {
    this.memory = scene.memory;
    this.rank = rank;
    this.changes = rows;
    this.times = Float64Array.from(rows, (k) => scene.memory.at_us[k]);
    this.before = rows.filter((k) => scene.memory.bar[k] < 0).length;
    this.buffers = scene.buffers.length;
    this.#restart();
  }

  #restart() {
    this.done = 0;
    this.held = Array.from({ length: this.buffers }, () => []);
  }

  /**
   * Segments at a moment, by buffer, from low to high: what a later change overwrote is cut away.
   * A segment is {start, stop, content, offset, change}.
   */
  at(moment) {
    const count = Math.max(
      this.before,
      firstAbove(this.times, moment + 1e-9, 0, this.times.length),
    );
    if (count < this.done) this.#restart();
    for (; this.done < count; this.done++) this.#apply(this.changes[this.done]);
    return this.held;
  }

  #apply(k) {
    const { memory } = this;
    const [buffer, start, stop] = [memory.buffer[k], memory.start[k], memory.stop[k]];
    if (stop <= start) return;
    const kept = [];
    for (const old of this.held[buffer]) {
      if (old.stop <= start || old.start >= stop) {
        kept.push(old);
        continue;
      }
      if (old.start < start) kept.push({ ...old, stop: start });
      if (old.stop > stop)
        kept.push({ ...old, start: stop, offset: old.offset + stop - old.start });
    }
    kept.push({ start, stop, content: memory.content[k], offset: memory.offset[k], change: k });
    this.held[buffer] = kept.sort((a, b) => a.start - b.start);
  }
}
