/** One schedule: its columns as they came, and what drawing and searching need besides. */

import { languageName } from './words.js';

/** Kinds of work that keep a stream busy; the order of the page's kinds in `header.kinds`. */
export const CLASSES = ['copy', 'transfer', 'reduce', 'compute', 'wait', 'post', 'stuck'];
export const COPY = 0;
export const TRANSFER = 1;
export const REDUCE = 2;
export const COMPUTE = 3;
export const WAIT = 4;
export const POST = 5;
export const STUCK = 6;

/** Classes that take time: what the running sums are about. */
export const TIMED = [COPY, TRANSFER, REDUCE, COMPUTE, WAIT, STUCK];
const SUM_OF = [0, 1, 2, 3, 4, -1, 5];
export const SUMS = TIMED.length;

const BAR_COLUMNS = [
  'lane',
  'kind',
  'start_us',
  'end_us',
  'effect_us',
  'size',
  'peer',
  'round',
  'label',
  'source',
  'number',
  'notify',
  'partner',
  'src_rank',
  'src_buffer',
  'src_offset',
  'dst_rank',
  'dst_buffer',
  'dst_offset',
  'dst_size',
  'connection',
  'state',
];

/** The first index in [low, high) whose value is greater than `bound`; values ascend. */
export function firstAbove(values, bound, low, high) {
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] > bound) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** As `firstAbove`, for a bound that is probably near `low`. */
export function nextAbove(values, bound, low, high) {
  let step = 1;
  let last = low;
  while (last < high && values[last] <= bound) {
    low = last + 1;
    last += step;
    step <<= 1;
  }
  return firstAbove(values, bound, low, Math.min(last, high));
}

/** The places of the largest values, the largest first. */
export function largest(values, count) {
  return Array.from(values.keys())
    .sort((a, b) => values[b] - values[a] || a - b)
    .slice(0, count);
}

export class Scene {
  /**
   * @param {number} number 0, or 1 for the schedule that is compared with
   * @param {object} header texts and small tables
   * @param {function(string): ArrayLike<number>} column typed columns by name
   */
  constructor(number, header, column) {
    this.number = number;
    this.header = header;
    this.total = header.total_us;
    this.labels = header.labels;
    this.sources = header.sources;
    this.notifies = header.notifies;
    this.buffers = header.buffers;
    this.findings = header.findings;
    /** Added to the scene's times where another scene is aligned with it. */
    this.shift = 0;
    this.bars = {};
    for (const name of BAR_COLUMNS) this.bars[name] = column(`bars.${name}`);
    this.size = this.bars.lane.length;
    this.ranks = column('ranks');
    this.twin = column('twin');
    this.usage = column('usage');
    this.laneRank = column('lanes.rank');
    this.laneStream = column('lanes.stream');
    this.laneNames = header.lane_names;
    this.laneFirst = column('lanes.first');
    this.phases = columnsOf(column, 'phases', ['lane', 'start_us', 'end_us', 'label', 'round']);
    this.critical = columnsOf(column, 'critical', ['bar', 'begin_us', 'end_us']);
    this.traffic = columnsOf(column, 'traffic', ['source', 'target', 'bytes', 'share']);
    this.links = header.links && {
      names: header.links.names,
      ...columnsOf(column, 'links', ['gbps', 'bytes', 'share', 'load']),
    };
    this.busiestLinks = this.links ? largest(this.links.share, this.links.share.length) : [];
    const { node_of: node } = header.steps;
    this.steps = {
      table: header.steps,
      ofBar: column('steps.of_bar'),
      share: column('steps.share'),
      nodeOf: (rank) => (node.length ? node[rank] : rank),
      moves: columnsOf(column, 'moves', [
        ...['step', 'source', 'target', 'bytes'],
        ...['kind', 'begin_us', 'end_us'],
      ]),
    };
    this.memory = header.memory && memoryOf(header, column);
    this.#index();
  }

  #index() {
    const { kind, state, start_us, end_us } = this.bars;
    const classOfKind = Uint8Array.from(this.header.kinds, (k) => CLASSES.indexOf(k.class));
    this.classOf = new Uint8Array(this.size);
    this.sums = new Float64Array((this.size + 1) * SUMS);
    const { sums, classOf } = this;
    for (let i = 0, at = 0; i < this.size; i++, at += SUMS) {
      const c = state[i] === 1 ? STUCK : classOfKind[kind[i]];
      classOf[i] = c;
      for (let s = 0; s < SUMS; s++) sums[at + SUMS + s] = sums[at + s];
      if (SUM_OF[c] >= 0) sums[at + SUMS + SUM_OF[c]] += end_us[i] - start_us[i];
    }
    this.#trimLanes();
    this.#indexRanks();
    this.connections = connectionsOf(this);
  }

  /** Tasks that never begin stand at the end of their lanes and are not drawn. */
  #trimLanes() {
    const { state } = this.bars;
    this.laneStop = new Int32Array(this.laneRank.length);
    for (let k = 0; k < this.laneStop.length; k++) {
      let stop = this.laneFirst[k + 1];
      while (stop > this.laneFirst[k] && state[stop - 1] === 2) stop--;
      this.laneStop[k] = stop;
    }
  }

  #indexRanks() {
    this.rankIndex = new Map();
    this.ranks.forEach((rank, k) => this.rankIndex.set(rank, k));
    this.lanesOf = Array.from(this.ranks, () => []);
    this.laneRank.forEach((rank, k) => this.lanesOf[this.rankIndex.get(rank)]?.push(k));
    this.phasesOfLane = Array.from(this.laneRank, () => []);
    this.phases.lane.forEach((lane, k) => this.phasesOfLane[lane].push(k));
    this.phaseEnds = this.phasesOfLane.map((some) =>
      Float64Array.from(some, (k) => this.phases.end_us[k]),
    );
    this.alike = new Map();
    this.ranks.forEach((rank, k) => {
      const head = this.twin[k];
      if (head !== rank) this.alike.set(head, [...(this.alike.get(head) ?? []), rank]);
    });
  }

  /** The scene's name beside another one: its title, and the executor that recorded it. */
  get name() {
    const executor = this.fact('executor');
    return executor ? `${this.said.title} · ${executor}` : this.said.title;
  }

  /** The title and the facts in the language that is chosen. */
  get said() {
    return this.header.said[languageName()];
  }

  /** The value of a fact by its English name. */
  fact(wanted) {
    return this.said.facts.find(([, , name]) => name === wanted)?.[1];
  }

  /** The moment on the common axis at which a task has taken effect. */
  endOf(bar) {
    return Math.max(this.bars.end_us[bar], this.bars.effect_us[bar]) + this.shift;
  }

  rankOf(bar) {
    return this.laneRank[this.bars.lane[bar]];
  }

  kindName(bar) {
    return this.header.kinds[this.bars.kind[bar]].name;
  }

  laneName(lane) {
    return this.laneNames[lane];
  }

  /** The bar of another scene that is the same task, by its place and kind; -1 where none is. */
  counterpart(bar, other) {
    const lane = this.bars.lane[bar];
    const same = other.lanesOf[other.rankIndex.get(this.laneRank[lane])]?.find(
      (some) => other.laneStream[some] === this.laneStream[lane],
    );
    if (same === undefined || other.tasksOf(same) !== this.tasksOf(lane)) return -1;
    const found = other.laneFirst[same] + bar - this.laneFirst[lane];
    return other.kindName(found) === this.kindName(bar) ? found : -1;
  }

  tasksOf(lane) {
    return this.laneFirst[lane + 1] - this.laneFirst[lane];
  }

  /** The bar of a lane that is first to end after a moment; the lane's end if none does. */
  firstAfter(lane, at) {
    return firstAbove(this.bars.end_us, at, this.laneFirst[lane], this.laneStop[lane]);
  }
}

function columnsOf(column, table, names) {
  return Object.fromEntries(names.map((name) => [name, column(`${table}.${name}`)]));
}

function memoryOf(header, column) {
  return {
    /** Bytes of every buffer of every rank, rank by rank. */
    sizes: column('memory.sizes'),
    origins: header.origins,
    ...columnsOf(column, 'memory', [
      'bar',
      'at_us',
      'rank',
      'buffer',
      'start',
      'stop',
      'content',
      'offset',
    ]),
  };
}

/** RDMA writes on connections, by lane: bars in the order in which they set out, and in which of
 *  the lane's rows each is drawn, so that none hides another. */
function connectionsOf(scene) {
  const { connection, end_us, effect_us } = scene.bars;
  const found = new Map();
  for (let i = 0; i < scene.size; i++) {
    if (connection[i] < 0) continue;
    if (!found.has(connection[i])) found.set(connection[i], []);
    found.get(connection[i]).push(i);
  }
  for (const [lane, bars] of found) {
    const order = Int32Array.from(bars).sort((a, b) => end_us[a] - end_us[b] || a - b);
    const rows = new Uint8Array(order.length);
    const free = [];
    const starts = new Float64Array(order.length);
    const latest = new Float64Array(order.length);
    order.forEach((bar, k) => {
      let row = free.findIndex((at) => at <= end_us[bar]);
      if (row < 0) row = free.length < 4 ? free.push(0) - 1 : k % 4;
      free[row] = effect_us[bar];
      rows[k] = row;
      starts[k] = end_us[bar];
      latest[k] = Math.max(k ? latest[k - 1] : 0, effect_us[bar]);
    });
    found.set(lane, { bars: order, rows, count: Math.max(1, free.length), starts, latest });
  }
  return found;
}
