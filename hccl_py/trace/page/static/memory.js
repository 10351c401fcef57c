/** The contents of a rank's memory after some of its changes. */

import { firstAbove } from './scene.js';

export class RankMemory {
  constructor(scene, rank) {
    const { memory } = scene;
    this.memory = memory;
    this.rank = rank;
    const own = [];
    memory.rank.forEach((r, k) => {
      if (r === rank) own.push(k);
    });
    this.changes = Int32Array.from(own);
    this.times = Float64Array.from(own, (k) => memory.at_us[k]);
    this.before = own.filter((k) => memory.bar[k] < 0).length;
    const buffers = scene.buffers.length;
    const row = [...scene.memory.sizes.subarray(rank * buffers, (rank + 1) * buffers)];
    this.sizes = row;
    this.used = row.map(() => 0);
    for (const k of own) {
      this.used[memory.buffer[k]] = Math.max(this.used[memory.buffer[k]], memory.stop[k]);
    }
  }

  /** The number of the rank's changes that have taken effect at a moment. */
  countAt(at) {
    return Math.max(this.before, firstAbove(this.times, at + 1e-9, 0, this.times.length));
  }

  /**
   * Segments after the first `count` changes, by buffer, from low to high: what a later change
   * overwrote is cut away. A segment is {start, stop, content, offset, change}.
   */
  state(count) {
    const { memory } = this;
    const held = this.used.map(() => []);
    for (let i = 0; i < count; i++) {
      const k = this.changes[i];
      const buffer = memory.buffer[k];
      const start = memory.start[k];
      const stop = memory.stop[k];
      if (stop <= start) continue;
      const kept = [];
      for (const old of held[buffer]) {
        if (old.stop <= start || old.start >= stop) {
          kept.push(old);
          continue;
        }
        if (old.start < start) kept.push({ ...old, stop: start });
        if (old.stop > stop) {
          kept.push({ ...old, start: stop, offset: old.offset + stop - old.start });
        }
      }
      kept.push({ start, stop, content: memory.content[k], offset: memory.offset[k], change: k });
      held[buffer] = kept;
    }
    held.forEach((segments) => segments.sort((a, b) => a.start - b.start));
    return held;
  }

  originsOf(content) {
    return content < 0 ? [] : this.memory.origins[content];
  }
}
