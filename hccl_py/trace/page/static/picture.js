/** The picture: a stage for every schedule with its sentence, the transport, the film strips. */

import { RDMA } from './steps.js';
import { Stage } from './stage.js';
import { Track } from './track.js';
import { byId, h, named, placeOn, tooltip } from './dom.js';
import { formatBytes, formatRate, formatTime } from './format.js';
import { mapped, meetings } from './against.js';
import { markOf } from './mark.js';
import { sentenceOf } from './describe.js';
import { t } from './words.js';

const SECONDS_OF_ALL = 12; // of playing by time
const MS_OF_STEP = 1300;

export class PictureView {
  constructor(state) {
    this.state = state;
    this.choice = { rank: null, server: null, chunk: null, hovered: null, isBuffers: false };
    this.stages = state.scenes.map((scene) => this.#addStage(scene));
    /** The stage with most steps: the scrubber counts its steps, others go along. */
    this.lead = this.stages.reduce((a, b) => (b.steps.count > a.steps.count ? b : a));
    this.knots = this.stages.map((stage) => meetings(this.lead, stage));
    this.byTime = false;
    this.at = Math.min(this.lead.steps.count, 0.5);
    this.scrub = byId('scrub');
    this.track = new Track(state, this);
    this.playing = false;
    this.findings = this.stages.flatMap((stage) =>
      stage.scene.findings.map((finding, k) => ({
        ...{ stage, finding },
        step: stage.steps.table.findings[k],
      })),
    );
    this.finding = -1;
    this.#listen();
    this.#sync();
    const [first] = [...this.errors].sort((a, b) => a.step - b.step);
    if (first) this.goToFinding(this.findings.indexOf(first));
  }

  get errors() {
    return this.findings.filter(({ finding }) => finding.severity === 'error');
  }

  #addStage(scene) {
    const canvas = h('canvas', { id: `cards${scene.number || ''}`, tabindex: 0, role: 'img' });
    const room = h('div', { class: 'cards-room' }, canvas);
    byId('picture').append(room);
    const stage = new Stage(this.state, scene, canvas, this.choice);
    const name = h('strong', { id: `step-name${scene.number || ''}` });
    const said = h('span', { id: `step-said${scene.number || ''}` });
    byId('saying').append(h('p', {}, markOf(this.state, scene), name, ' ', said));
    const reel = document.querySelectorAll('#film .film')[scene.number];
    const frames = [...(reel?.querySelectorAll('.frame') ?? [])];
    frames.forEach((frame) => this.#listenTo(frame, stage));
    canvas.addEventListener('pointermove', (event) => this.#hover(event, stage));
    canvas.addEventListener('pointerleave', (event) => this.#hover(event, null));
    canvas.addEventListener('click', (event) =>
      this.#clicked(stage, stage.hit(placeOn(canvas, event))),
    );
    return Object.assign(stage, { room, heading: name, sentence: said, frames });
  }

  #listenTo(frame, stage) {
    const number = Number(frame.dataset.step);
    const go = () => this.goToStep(stage, number);
    frame.setAttribute('tabindex', '0');
    frame.setAttribute('role', 'button');
    frame.addEventListener('click', go);
    frame.addEventListener('keydown', (event) => {
      if (event.key !== 'Enter') return;
      event.stopPropagation();
      go();
    });
  }

  #listen() {
    const on = (id, action) => byId(id).addEventListener('click', action);
    on('to-begin', () => this.go(0));
    on('step-back', () => this.onward(-1));
    on('play', () => this.play());
    on('step-on', () => this.onward(1));
    on('scale', () => this.setScale(!this.byTime));
    on('buffers', () => this.setBuffers(!this.choice.isBuffers));
    this.scrub.addEventListener('input', () =>
      this.goTo((Number(this.scrub.value) / 1000) * this.end),
    );
    this.state.on('cursor', () => !this.isMoving && this.#follow());
    new ResizeObserver(() => this.draw()).observe(byId('picture'));
  }

  // ---- where it is ----

  get end() {
    const ends = this.stages.map(({ scene }) => scene.total + scene.shift);
    return this.byTime ? Math.max(...ends) : this.lead.steps.count;
  }

  /** The place in the leading steps that is a place of a stage. */
  #leadPlace(stage, place) {
    return mapped(this.knots[this.stages.indexOf(stage)], place, 1);
  }

  #sync() {
    this.stages.forEach(({ steps, scene }, k) => {
      const at = this.byTime ? this.at - scene.shift : mapped(this.knots[k], this.at, 0);
      steps.set(at, this.byTime);
    });
  }

  /** Draw at a place of the scale, and take the cursor of the lanes along. */
  #moveTo(at) {
    this.at = Math.max(0, Math.min(this.end, at));
    this.#sync();
    this.isMoving = true;
    const { steps, scene } = this.lead;
    this.state.moveCursor((steps.isOver ? scene.total : steps.time) + scene.shift);
    this.isMoving = false;
    this.draw();
  }

  /** Go to a place of the scale. */
  goTo(at) {
    this.playing = false;
    this.#moveTo(at);
  }

  /** Go to a place in the leading steps. */
  go(place) {
    const { steps, scene } = this.lead;
    this.goTo(this.byTime ? steps.timeOf(place) + scene.shift : place);
  }

  /** Go where the cursor is, or to the step of the task that is selected there. */
  #follow() {
    const { selected, cursor } = this.state;
    const stage = selected ? this.stages[selected.scene.number] : this.lead;
    const { steps, scene } = stage;
    const number =
      selected && cursor === scene.endOf(selected.bar) ? steps.stepOf(selected.bar) : 0;
    const place = number > 0 ? number - 0.5 : steps.placeOf(cursor - scene.shift);
    this.playing = false;
    this.at = this.byTime ? cursor : this.#leadPlace(stage, place);
    this.#sync();
    this.draw();
  }

  // ---- what one may do ----

  /** The middle of the next or the last step; from its middle on, the end. */
  onward(by) {
    const { count: steps, place } = this.lead.steps;
    const whole = Math.floor(place + 0.001);
    const part = place - whole;
    if (by > 0)
      this.go(
        part < 0.45 && whole < steps ? whole + 0.5 : whole + 1.5 > steps ? steps : whole + 1.5,
      );
    else if (place >= steps) this.go(steps - 0.5);
    else this.go(place <= 0.5 ? 0 : part > 0.55 ? whole + 0.5 : whole - 0.5);
  }

  /** A tenth of a step, or, where buffers are shown, to the next change of the chosen rank's. */
  aLittle(by) {
    const { lead, choice } = this;
    if (!lead.isBuffers) {
      this.go(lead.steps.place + by * 0.1);
      return;
    }
    const { memory, moment } = lead.buffers;
    const at = memory.beside(moment, by, choice.rank);
    if (at !== null) this.state.moveCursor(at + lead.scene.shift);
  }

  setScale(byTime) {
    const { place } = this.lead.steps;
    this.byTime = byTime;
    this.go(place);
  }

  /** Show buffers or data. Of servers, buffers of the chosen one's ranks are shown. */
  setBuffers(isBuffers) {
    const { choice } = this;
    if (this.lead.steps.table.noun !== 'rank' && isBuffers !== choice.isBuffers)
      [choice.server, choice.rank] = isBuffers ? [choice.rank ?? 0, null] : [null, choice.server];
    choice.isBuffers = isBuffers;
    this.draw();
  }

  play() {
    this.playing = !this.playing;
    if (this.playing && this.at >= this.end) this.#moveTo(0);
    this.last = performance.now();
    if (this.playing) requestAnimationFrame((now) => this.#tick(now));
    this.draw();
  }

  #tick(now) {
    if (!this.playing) return;
    let { at } = this;
    const passed = Math.max(0, Math.min(60, now - this.last)); // a frame can be older than the click
    this.last = now;
    if (this.byTime) at += (passed * this.end) / (1000 * SECONDS_OF_ALL);
    else if (!matchMedia('(prefers-reduced-motion: reduce)').matches) {
      at += passed / (this.lead.steps.count > 20 ? MS_OF_STEP / 2.5 : MS_OF_STEP);
    } else {
      this.rested = (this.rested ?? 0) + passed;
      if (this.rested > MS_OF_STEP) [this.rested, at] = [0, Math.floor(at) + 1.5];
    }
    if (at >= this.end) this.playing = false;
    else requestAnimationFrame((later) => this.#tick(later));
    this.#moveTo(at);
  }

  /** Choose the next rank or the one before; of servers, whose ranks are shown. */
  nextRank(by) {
    const { choice } = this;
    const which = choice.server === null ? 'rank' : 'server';
    const { nodes } = this.lead.steps;
    choice[which] = ((choice[which] ?? (by > 0 ? -1 : 0)) + by + nodes) % nodes;
    this.draw();
  }

  followNext() {
    const next = (this.choice.chunk ?? -1) + 1;
    this.choice.chunk = next < (this.lead.steps.cells?.columns ?? 0) ? next : null;
    this.draw();
  }

  deselect() {
    Object.assign(this.choice, { rank: null, chunk: null });
    this.draw();
  }

  nextFinding() {
    if (this.findings.length) this.goToFinding((this.finding + 1) % this.findings.length);
  }

  /** Go where a finding is: its step and rank, and its memory where it is about that. */
  goToFinding(number) {
    this.finding = number;
    const { stage, finding, step } = this.findings[number];
    const [rank] = finding.ranks;
    const node = rank === undefined ? null : stage.scene.steps.nodeOf(rank);
    this.setBuffers(false);
    this.choice.rank = node;
    this.setBuffers(stage.buffers !== null && finding.memory.length > 0);
    if (this.choice.server !== null) this.choice.rank = rank;
    this.goToStep(stage, step);
  }

  /** Go to the middle of a step of a stage; before the first one for 0. */
  goToStep(stage, step) {
    this.go(this.#leadPlace(stage, Math.max(0, step - 0.5)));
  }

  #hover(event, stage) {
    const found = stage?.hit(placeOn(stage.canvas, event));
    tooltip(event, found && this.#saidOf(stage, found));
    if (stage) stage.canvas.style.cursor = found ? 'pointer' : 'default';
    const node = found?.kind === 'card' || found?.kind === 'cell' ? found.node : null;
    if (node === this.choice.hovered) return;
    this.choice.hovered = node;
    if (this.state.mode === 'picture') this.stages.forEach((some) => some.draw());
  }

  #saidOf(stage, found) {
    const { kind, move, node, column } = found;
    const { moves, cells, table } = stage.steps;
    const name = (some) => t(`node_${table.noun}`, { name: table.names[some] });
    if (kind === 'bytes') return stage.buffers.said(found);
    if (kind === 'card') return [stage.ranks ? t('rank', { rank: node }) : name(node)];
    if (kind === 'cell') {
      const chunk = { rank: stage.name(column), number: column };
      const shares = cells.reduces && t('shares', { found: found.found, all: cells.rows });
      const what = t(cells.owners ? 'memory_origin' : 'chunk', chunk);
      return [name(node), `${what} ${shares || (found.found ? '' : t('not_yet'))}`];
    }
    const [begin, end] = [moves.begin_us[move], moves.end_us[move]];
    return [
      `${name(moves.source[move])} → ${name(moves.target[move])}`,
      `${formatBytes(moves.bytes[move])}${moves.kind[move] & RDMA ? ', RDMA' : ''} ${cells?.labels[move] ?? ''}`,
      `${t('from_to', { from: formatTime(begin), to: formatTime(end) })}, ${formatRate(moves.bytes[move], end - begin)}`,
    ];
  }

  #clicked(stage, found) {
    const { choice } = this;
    const toggle = (what, value) => (choice[what] = choice[what] === value ? null : value);
    if (!found) this.deselect();
    else if (found.kind === 'move') this.state.goToTask(stage.scene, stage.steps.barOf(found.move));
    else if (found.kind === 'cell') toggle('chunk', found.column);
    else toggle('rank', found.node);
    this.draw();
  }

  // ---- drawing ----

  draw() {
    this.#drawTransport();
    this.track.draw();
    this.stages.forEach((stage) => this.#drawWords(stage)); // before the room is measured
    for (const stage of this.stages) {
      stage.marks = this.#marksOf(stage);
      const { room, steps } = stage;
      const isUpright = steps.table.seats.kind === 'rows' && innerWidth < 700;
      room.classList.toggle('upright', isUpright && !stage.isBuffers);
      if (!room.clientWidth) continue;
      stage.resize(room.clientWidth, room.clientHeight);
      stage.draw();
      this.#drawFrames(stage);
    }
    this.state.changed('picture');
  }

  #drawFrames({ frames, steps }) {
    for (const frame of frames) {
      const number = Number(frame.dataset.step);
      const isOn = number === (steps.isBefore ? 0 : steps.now);
      if (isOn && !frame.classList.contains('on')) bringIntoFilm(frame);
      frame.classList.toggle('on', isOn);
      frame.setAttribute('aria-current', isOn ? 'step' : 'false');
      const step = steps.list[number - 1];
      const said = step && `${t('step_of', { number, count: steps.count })}. ${sentenceOf(step)}`;
      frame.setAttribute('aria-label', said ?? t('before_first'));
    }
  }

  /** The nodes, moves and memory that errors of this step are about. */
  #marksOf(stage) {
    const { steps, scene } = stage;
    const own = this.errors.filter((some) => some.stage === stage && some.step === steps.now);
    return {
      nodes: new Set(own.flatMap(({ finding }) => finding.ranks.map(scene.steps.nodeOf))),
      moves: new Set(own.flatMap(({ finding }) => finding.bars.map((bar) => steps.moveOf(bar)))),
      memory: own.flatMap(({ finding }) => finding.memory),
    };
  }

  #drawWords(stage) {
    const { steps } = stage;
    const step = steps.list[steps.now - 1];
    const number = t('step_of', { number: steps.now, count: steps.count });
    const rests = steps.isBefore || steps.isOver || !step;
    const name = !rests
      ? `${number}${step.label && `: ${step.label}`}`
      : t(steps.isOver && step ? 'at_the_end' : 'before_first');
    let said = rests ? steps.arrived().text : sentenceOf(step);
    if (stage.crowded && !stage.ranks && this.choice.rank === null && !rests)
      said += ` ${t('bold_ones')}`;
    stage.heading.textContent = name;
    if (stage.sentence.textContent !== said) stage.sentence.textContent = said;
    stage.canvas.setAttribute('aria-label', `${name}. ${said}`);
    if (stage === this.lead) this.scrub.setAttribute('aria-valuetext', `${name}. ${said}`);
  }

  #drawTransport() {
    this.scrub.value = String(Math.round((1000 * this.at) / (this.end || 1)));
    this.scrub.setAttribute('aria-label', t('place_in_steps'));
    byId('play').textContent = this.playing ? `❚❚ ${t('stop')}` : `▶ ${t('play')}`;
    byId('scale').textContent = t(this.byTime ? 'by_time' : 'by_steps');
    byId('buffers').textContent = t('buffers');
    byId('buffers').setAttribute('aria-pressed', String(this.choice.isBuffers));
    const isKnown = this.stages.some((stage) => stage.buffers);
    byId('buffers').disabled = !isKnown;
    const why = this.lead.scene.header.memory_left_out || t('no_memory');
    named(byId('scale'), t('scale_title'));
    named(byId('buffers'), isKnown ? t('buffers_title') : why);
    named(byId('to-begin'), t('to_begin'));
    named(byId('step-back'), t('step_back'));
    named(byId('step-on'), t('step_on'));
  }
}

/** Scroll the film, and nothing else, until a frame is seen. */
function bringIntoFilm(frame) {
  const film = byId('film');
  const [box, room] = [frame.getBoundingClientRect(), film.getBoundingClientRect()];
  if (box.left < room.left || box.right > room.right)
    film.scrollLeft += box.left - room.left - room.width / 3;
}
