/** The first view: the stage with its sentence, the transport below it, the side, the film strip. */

import { RDMA, Steps } from './steps.js';
import { Side } from './side.js';
import { Stage } from './stage.js';
import { byId, fitted, h } from './dom.js';
import { formatBytes, formatRate, formatTime } from './format.js';
import { t } from './words.js';

const SECONDS_OF_ALL = 12; // of playing by time
const MS_OF_STEP = 1300;

export class PictureView {
  constructor(state) {
    this.state = state;
    [this.scene] = state.scenes;
    this.steps = new Steps(this.scene);
    this.stage = new Stage(state, this.steps, byId('cards'));
    this.side = new Side(this);
    this.scrub = byId('scrub');
    this.frames = [...document.querySelectorAll('#film .frame')];
    this.playing = false;
    this.finding = -1;
    this.#listen();
    const [first] = this.#errors();
    if (first !== undefined) this.goToFinding(first);
  }

  /** The numbers of findings that are errors, by step. */
  #errors() {
    const { findings, steps } = this.scene;
    return findings
      .map((_, k) => k)
      .filter((k) => findings[k].severity === 'error')
      .sort((a, b) => steps.table.findings[a] - steps.table.findings[b]);
  }

  #listen() {
    const { stage, steps } = this;
    const on = (id, action) => byId(id).addEventListener('click', action);
    on('to-begin', () => this.go(0));
    on('step-back', () => this.onward(-1));
    on('play', () => this.play());
    on('step-on', () => this.onward(1));
    on('scale', () => this.setScale(!steps.byTime));
    this.scrub.addEventListener('input', () => {
      this.playing = false;
      steps.at = (Number(this.scrub.value) / 1000) * steps.end;
      this.#moved();
    });
    for (const frame of this.frames) {
      const number = Number(frame.dataset.step);
      frame.setAttribute('tabindex', '0');
      frame.setAttribute('role', 'button');
      frame.addEventListener('click', () => this.go(number && number - 0.5));
      frame.addEventListener('keydown', (event) => {
        if (event.key !== 'Enter') return;
        event.stopPropagation();
        this.go(number && number - 0.5);
      });
    }
    stage.canvas.addEventListener('pointermove', (event) => this.#hover(event));
    stage.canvas.addEventListener('pointerleave', () => this.#hover(null));
    stage.canvas.addEventListener('click', (event) => this.#clicked(this.#under(event)));
    this.state.on('selection', () => this.#followSelection());
    new ResizeObserver(() => this.draw()).observe(byId('cards-room'));
  }

  // ---- what one may do ----

  go(place) {
    this.playing = false;
    this.steps.go(place);
    this.#moved();
  }

  /** Draw, and take the cursor of the lanes along. */
  #moved() {
    this.state.cursor = this.steps.time + this.scene.shift;
    this.draw();
  }

  /** The middle of the next or the last step; from its middle on, the end. */
  onward(by) {
    const { count: steps, place } = this.steps;
    const whole = Math.floor(place + 0.001);
    const part = place - whole;
    if (by > 0)
      this.go(
        part < 0.45 && whole < steps ? whole + 0.5 : whole + 1.5 > steps ? steps : whole + 1.5,
      );
    else if (place >= steps) this.go(steps - 0.5);
    else this.go(place <= 0.5 ? 0 : part > 0.55 ? whole + 0.5 : whole - 0.5);
  }

  setScale(byTime) {
    this.steps.setScale(byTime);
    this.draw();
  }

  play() {
    this.playing = !this.playing;
    if (this.playing && this.steps.isOver) this.steps.go(0);
    this.last = performance.now();
    if (this.playing) requestAnimationFrame((now) => this.#tick(now));
    this.draw();
  }

  #tick(now) {
    if (!this.playing) return;
    const { steps } = this;
    const passed = Math.max(0, Math.min(60, now - this.last)); // a frame can be older than the click
    this.last = now;
    if (steps.byTime) steps.at += (passed * steps.end) / (1000 * SECONDS_OF_ALL);
    else if (!matchMedia('(prefers-reduced-motion: reduce)').matches) {
      steps.at += passed / (steps.count > 20 ? MS_OF_STEP / 2.5 : MS_OF_STEP);
    } else {
      this.rested = (this.rested ?? 0) + passed;
      if (this.rested > MS_OF_STEP) [this.rested, steps.at] = [0, Math.floor(steps.at) + 1.5];
    }
    if (steps.at >= steps.end) [steps.at, this.playing] = [steps.end, false];
    else requestAnimationFrame((later) => this.#tick(later));
    this.#moved();
  }

  chooseRank(rank) {
    if (rank >= this.steps.nodes) return;
    this.stage.rank = rank < 0 ? this.steps.nodes - 1 : rank;
    this.draw();
  }

  followNext() {
    const { stage, steps } = this;
    const next = (stage.chunk ?? -1) + 1;
    stage.chunk = next < (steps.cells?.columns ?? 0) ? next : null;
    this.draw();
  }

  deselect() {
    Object.assign(this.stage, { rank: null, chunk: null });
    this.draw();
  }

  nextFinding() {
    const all = this.scene.findings.length;
    if (all) this.goToFinding((this.finding + 1) % all);
  }

  goToFinding(k) {
    this.finding = k;
    const number = this.scene.steps.table.findings[k];
    const [rank] = this.scene.findings[k].ranks;
    this.stage.rank = rank === undefined ? null : this.scene.steps.nodeOf(rank);
    this.go(Math.max(0, number - 0.5));
  }

  /** Show the step of a task that is selected in the lanes. */
  #followSelection() {
    const { selected } = this.state;
    const number = selected?.scene === this.scene ? this.scene.steps.ofBar[selected.bar] : 0;
    if (number > 0 && this.steps.now !== number) this.steps.go(number - 0.5);
  }

  #under(event) {
    const box = this.stage.canvas.getBoundingClientRect();
    return this.stage.hit(event.clientX - box.left, event.clientY - box.top);
  }

  #hover(event) {
    const found = event && this.#under(event);
    const node = found?.node ?? null;
    const tooltip = byId('tooltip');
    tooltip.hidden = !found;
    if (found) {
      tooltip.replaceChildren(...this.#said(found).map((line) => h('div', {}, line)));
      tooltip.style.left = `${Math.min(event.clientX + 14, innerWidth - 240)}px`;
      tooltip.style.top = `${Math.min(event.clientY + 14, innerHeight - 90)}px`;
    }
    this.stage.canvas.style.cursor = found ? 'pointer' : 'default';
    if (node === this.stage.hovered) return;
    this.stage.hovered = node;
    this.stage.draw();
  }

  #said({ kind, move, node, column, found }) {
    const { moves, cells, table } = this.steps;
    const name = (some) => t(`node_${table.noun}`, { name: table.names[some] });
    if (kind === 'card') return [name(node)];
    if (kind === 'cell') {
      const shares = cells.reduces
        ? t('shares', { found, all: cells.rows })
        : found
          ? ''
          : t('not_yet');
      return [name(node), `${this.#chunk(column)} ${shares}`];
    }
    const [begin, end] = [moves.begin_us[move], moves.end_us[move]];
    return [
      `${name(moves.source[move])} → ${name(moves.target[move])}`,
      `${formatBytes(moves.bytes[move])}${moves.kind[move] & RDMA ? ', RDMA' : ''} ${cells?.labels[move] ?? ''}`,
      `${t('from_to', { from: formatTime(begin), to: formatTime(end) })}, ${formatRate(moves.bytes[move], end - begin)}`,
    ];
  }

  #chunk(column) {
    return t(this.steps.cells.owners ? 'memory_origin' : 'chunk', {
      rank: this.stage.name(column),
      number: column,
    });
  }

  #clicked(found) {
    const { stage } = this;
    if (!found) this.deselect();
    else if (found.kind === 'move') this.#showTask(found.move);
    else if (found.kind === 'cell')
      stage.chunk = stage.chunk === found.column ? null : found.column;
    else stage.rank = stage.rank === found.node ? null : found.node;
    this.draw();
  }

  /** Select the first task of a move, in the lanes. */
  #showTask(move) {
    const { step, source, target } = this.steps.moves;
    const { ofBar, nodeOf } = this.scene.steps;
    const { src_rank, dst_rank } = this.scene.bars;
    const bar = ofBar.findIndex(
      (number, k) =>
        number === step[move] &&
        nodeOf(src_rank[k]) === source[move] &&
        nodeOf(dst_rank[k]) === target[move],
    );
    if (bar < 0) return;
    this.state.setMode('lanes');
    this.state.select(this.scene, bar);
  }

  // ---- drawing ----

  draw() {
    if (this.state.mode !== 'picture') return;
    const room = byId('cards-room');
    const isUpright = this.steps.table.seats.kind === 'rows' && innerWidth < 700;
    room.classList.toggle('upright', isUpright);
    if (!room.clientWidth) return;
    const { stage, steps } = this;
    stage.marks = this.#marks();
    stage.resize(room.clientWidth, room.clientHeight);
    stage.draw();
    this.#drawWords();
    this.#drawTicks();
    this.side.draw();
    this.frames.forEach((frame) => {
      const isOn = Number(frame.dataset.step) === (steps.isBefore ? 0 : steps.now);
      if (isOn && !frame.classList.contains('on')) this.#bringIntoFilm(frame);
      frame.classList.toggle('on', isOn);
      frame.setAttribute('aria-current', isOn ? 'step' : 'false');
    });
  }

  /** Scroll the film, and nothing else, until a frame is seen. */
  #bringIntoFilm(frame) {
    const film = byId('film');
    const [box, room] = [frame.getBoundingClientRect(), film.getBoundingClientRect()];
    if (box.left < room.left || box.right > room.right)
      film.scrollLeft += box.left - room.left - room.width / 3;
  }

  /** The nodes and moves that errors of this step are about. */
  #marks() {
    const { findings, steps } = this.scene;
    const [nodes, moves] = [new Set(), new Set()];
    const { now } = this.steps;
    for (const k of this.#errors()) {
      if (steps.table.findings[k] !== now) continue;
      findings[k].ranks.forEach((rank) => nodes.add(steps.nodeOf(rank)));
      for (const bar of findings[k].bars) {
        const [from, to] = [this.scene.bars.src_rank[bar], this.scene.bars.dst_rank[bar]].map(
          (rank) => (rank < 0 ? -1 : steps.nodeOf(rank)),
        );
        for (const move of this.steps.movesOf(now)) {
          if (this.steps.moves.source[move] === from && this.steps.moves.target[move] === to)
            moves.add(move);
        }
      }
    }
    return { nodes, moves };
  }

  /** A step in one sentence. */
  sentence({ clauses, ending }) {
    const parts = clauses.map(({ scope, key, who, values }) => {
      const noun = t(`noun_${who}`);
      return t(`scope_${scope}`) + t(`rule_${key}`, { who: noun, ...values });
    });
    if (ending) parts.push(t(`ending_${ending}`));
    const text = parts.join(t('clause_mark'));
    return text && text[0].toUpperCase() + text.slice(1) + t('full_stop');
  }

  #drawWords() {
    const { steps, stage } = this;
    const step = steps.list[steps.now - 1];
    const number = t('step_of', { number: steps.now, count: steps.count });
    const name =
      steps.isBefore || !step
        ? t('before_first')
        : steps.isOver
          ? t('at_the_end')
          : `${number}${step.label && `: ${step.label}`}`;
    let said =
      steps.isBefore || steps.isOver || !step ? this.side.arrived().text : this.sentence(step);
    if (stage.crowded && stage.rank === null && step && !steps.isOver) said += ` ${t('bold_ones')}`;
    byId('step-name').textContent = name;
    if (byId('step-said').textContent !== said) byId('step-said').textContent = said;
    stage.canvas.setAttribute('aria-label', `${name}. ${said}`);
    this.scrub.value = String(Math.round((1000 * steps.at) / (steps.end || 1)));
    this.scrub.setAttribute('aria-label', t('place_in_steps'));
    this.scrub.setAttribute('aria-valuetext', `${name}. ${said}`);
    byId('play').textContent = this.playing ? `❚❚ ${t('stop')}` : `▶ ${t('play')}`;
    byId('scale').textContent = t(steps.byTime ? 'by_time' : 'by_steps');
    byId('scale').title = t('scale_title');
    const titles = { 'to-begin': 'to_begin', 'step-back': 'step_back', 'step-on': 'step_on' };
    for (const [id, word] of Object.entries(titles)) {
      byId(id).title = t(word);
      byId(id).setAttribute('aria-label', t(word));
    }
    for (const frame of this.frames) {
      const of = steps.list[Number(frame.dataset.step) - 1];
      frame.setAttribute(
        'aria-label',
        of
          ? `${t('step_of', { number: frame.dataset.step, count: steps.count })}. ${this.sentence(of)}`
          : t('before_first'),
      );
    }
  }

  #drawTicks() {
    const { steps } = this;
    const width = byId('track').clientWidth;
    const g = fitted(byId('ticks'), width, 18);
    const { colours } = this.state.theme;
    g.fillStyle = colours.faint;
    g.fillRect(0, 0, width, 18);
    const wrong = new Set(this.#errors().map((k) => this.scene.steps.table.findings[k]));
    steps.list.forEach((step, k) => {
      const [from, to] = steps.byTime
        ? [step.begin / steps.end, step.end / steps.end]
        : [k / steps.count, (k + 1) / steps.count];
      const [x, wide] = [from * width, Math.max(1, (to - from) * width - 1)];
      g.fillStyle = wrong.has(k + 1)
        ? colours.bad
        : step.ending.includes('adds')
          ? '#7b5ea7'
          : '#0b7a55';
      g.fillRect(x, 2, wide, 14);
      if (k + 1 === steps.now) {
        g.strokeStyle = colours.text;
        g.lineWidth = 2;
        g.strokeRect(x + 1, 1, Math.max(1, wide - 2), 16);
      }
      if (wide < 12) return;
      g.fillStyle = '#fff';
      g.font = '11px system-ui, sans-serif';
      const mark = wrong.has(k + 1) ? '✗ ' : '';
      g.fillText(
        mark + (wide > 8 * step.label.length + 10 && step.label ? step.label : k + 1),
        x + 4,
        13,
      );
    });
  }
}
