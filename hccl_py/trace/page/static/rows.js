/** The rows from top to bottom: ranks with their lanes, folded, pinned, alike ones hidden. */

export const HEAD = 24;
export const LANE = 22;
const CONNECTION_ROW = 12;
const LINK = 18;
const OPEN_AT_FIRST = 40;

/**
 * A row: `kind` head, lane, links or link, its scene, the rank's index there, the lane (-1 where it
 * has none), and where it stands: `y` among the pinned rows or among the others.
 */
export class Rows {
  constructor(scenes) {
    this.scenes = scenes;
    this.folded = new Set();
    this.pinned = new Set();
    this.opened = new Set();
    this.#foldAtFirst();
    this.build();
  }

  /** Ranks beyond the first screenful are folded. */
  #foldAtFirst() {
    let rows = 0;
    for (const scene of this.scenes) this.folded.add(key(scene, 'links'));
    for (const { scene, k } of this.#order()) {
      rows += 1 + scene.lanesOf[k].length;
      if (rows > OPEN_AT_FIRST && rows > 1 + scene.lanesOf[k].length) {
        this.folded.add(key(scene, k));
      }
    }
  }

  /** Ranks from top to bottom; of two schedules, the same rank of both stands together. */
  *#order() {
    const [first, second] = this.scenes;
    for (const rank of first.ranks) {
      yield* this.#visible(first, rank);
      if (second) yield* this.#visible(second, rank);
    }
    for (const rank of second?.ranks ?? []) {
      if (!first.rankIndex.has(rank)) yield* this.#visible(second, rank);
    }
  }

  *#visible(scene, rank) {
    const k = scene.rankIndex.get(rank);
    if (k === undefined) return;
    const head = scene.twin[k];
    const isHidden = head !== rank && !this.opened.has(`${scene.number}:${head}`);
    if (!isHidden || this.pinned.has(key(scene, k))) yield { scene, k };
  }

  build() {
    this.pinnedRows = [];
    this.rows = [];
    this.rowOfLane = this.scenes.map((scene) => new Map());
    this.rowOfRank = this.scenes.map(() => new Map());
    const heights = { pinned: 0, free: 0 };
    const add = (isPinned, row) => {
      const part = isPinned ? 'pinned' : 'free';
      row.pinned = isPinned;
      row.y = heights[part];
      heights[part] += row.height;
      (isPinned ? this.pinnedRows : this.rows).push(row);
      if (row.lane >= 0) this.rowOfLane[row.scene.number].set(row.lane, row);
      else if (row.kind === 'head') this.rowOfRank[row.scene.number].set(row.k, row);
    };
    for (const { scene, k } of this.#order()) {
      const isPinned = this.pinned.has(key(scene, k));
      add(isPinned, { kind: 'head', scene, k, lane: -1, height: HEAD });
      if (this.folded.has(key(scene, k))) continue;
      for (const lane of scene.lanesOf[k]) {
        const connections = scene.connections.get(lane);
        const height = connections ? Math.max(LANE, connections.count * CONNECTION_ROW + 4) : LANE;
        add(isPinned, { kind: 'lane', scene, k, lane, height });
      }
    }
    for (const scene of this.scenes) this.#addLinks(scene, (row) => add(false, row));
    this.pinnedHeight = heights.pinned;
    this.height = heights.free;
  }

  /** Below all ranks: the load of the busiest links. */
  #addLinks(scene, add) {
    if (!scene.links || !scene.links.share.length) return;
    add({ kind: 'links', scene, k: 'links', lane: -1, height: HEAD });
    if (this.folded.has(key(scene, 'links'))) return;
    for (const link of scene.busiestLinks) {
      add({ kind: 'link', scene, k: 'links', lane: -1, link, height: LINK });
    }
  }

  isFolded(scene, k) {
    return this.folded.has(key(scene, k));
  }

  isPinned(scene, k) {
    return this.pinned.has(key(scene, k));
  }

  isOpened(scene, k) {
    return this.opened.has(`${scene.number}:${scene.ranks[k]}`);
  }

  toggleFold(scene, k) {
    toggle(this.folded, key(scene, k));
    this.build();
  }

  togglePin(scene, k) {
    toggle(this.pinned, key(scene, k));
    this.build();
  }

  /** Show or hide the ranks that do the same as rank k. */
  toggleAlike(scene, k) {
    const head = scene.ranks[k];
    if (!this.opened.delete(`${scene.number}:${head}`)) this.#openAlike(scene, head);
    this.build();
  }

  /** Show the ranks that do the same as another one; many of them at once are folded. */
  #openAlike(scene, head) {
    this.opened.add(`${scene.number}:${head}`);
    const ranks = scene.alike.get(head) ?? [];
    const lanes = scene.lanesOf[scene.rankIndex.get(head)].length;
    if (ranks.length * (1 + lanes) <= OPEN_AT_FIRST) return;
    for (const rank of ranks) this.folded.add(key(scene, scene.rankIndex.get(rank)));
  }

  /** Fold or unfold all ranks; the rows of links stay as they are. */
  foldAll(isFolded) {
    for (const { scene, k } of this.#order()) {
      if (isFolded) this.folded.add(key(scene, k));
      else this.folded.delete(key(scene, k));
    }
    this.build();
  }

  /** Unfold and show what hides a lane; returns its row. */
  uncover(scene, lane) {
    const k = scene.rankIndex.get(scene.laneRank[lane]);
    const head = scene.twin[k];
    const isHidden = head !== scene.ranks[k] && !this.opened.has(`${scene.number}:${head}`);
    if (isHidden) this.#openAlike(scene, head);
    const changed = this.folded.delete(key(scene, k)) || isHidden;
    if (changed) this.build();
    return this.rowOfLane[scene.number].get(lane);
  }

  /** The row in which a lane's tasks are seen: its own, its rank's where that is folded, or none. */
  showing(scene, lane) {
    const k = scene.rankIndex.get(scene.laneRank[lane]);
    return this.rowOfLane[scene.number].get(lane) ?? this.rowOfRank[scene.number].get(k);
  }
}

function key(scene, k) {
  return `${scene.number}:${k}`;
}

function toggle(set, value) {
  if (!set.delete(value)) set.add(value);
}
