/** The side, beside picture and lanes: what is wrong, what is chosen, this step, and the whole. */

import { Heat } from './heat.js';
import { markOf } from './mark.js';
import { TaskView } from './task.js';
import { button, byId, facts, h } from './dom.js';
import { formatBytes, formatChange, formatRate, formatShare, formatTime } from './format.js';
import { languageName, t } from './words.js';
import { nameOf, placeOf, rangeIn } from './describe.js';
import { phasesOf } from './against.js';

const LEGEND = ['transfer', 'copy', 'reduce', 'compute', 'wait', 'post', 'stuck_wait'];
const [MOST_FINDINGS, MOST_PHASES, MOST_LINKS] = [200, 64, 3];

export class Side {
  constructor(state, picture) {
    Object.assign(this, { state, picture, heat: new Heat(state), task: new TaskView(state) });
    const { choice } = picture;
    const step = () => picture.stages.map(({ steps }) => steps.now);
    const task = () => [state.selected?.scene.number, state.selected?.bar];
    /** Sections from top to bottom: what each depends on, and what makes it. */
    this.parts = [
      [() => [picture.finding], () => this.#findings()],
      [() => [task(), state.depth], () => this.task.build()],
      [() => [choice, step(), choice.isBuffers && state.cursor], () => this.#chosen()],
      [() => [step()], () => picture.stages.map((stage) => this.#step(stage))],
      [() => [state.scenes[1]?.shift], () => this.#phases()],
      [() => [picture.stages.map(({ steps }) => steps.arrived().text)], () => this.#arrived()],
      [() => [state.critical, state.criticalStep], () => this.#critical()],
      [() => [], () => this.#links()],
      [() => [], () => state.scenes.map((scene) => titled(t('facts'), scene.said.facts))],
      [() => [state.mode, choice], () => this.#legend()],
    ].map(([of, build]) => ({ of, build, element: h('section', {}) }));
    const elements = this.parts.map(({ element }) => element);
    byId('side').replaceChildren(
      ...elements.slice(0, -2),
      this.heat.element,
      ...elements.slice(-2),
    );
  }

  /** Make sections anew where what they depend on has changed. */
  draw() {
    const common = `${languageName()} ${this.state.theme.name}`;
    for (const part of this.parts) {
      const stamp = common + JSON.stringify(part.of());
      if (stamp === part.stamp) continue;
      part.stamp = stamp;
      part.element.replaceChildren(...part.build().flat(Infinity).filter(Boolean));
    }
    if (common !== this.common) this.heat.draw();
    this.common = common;
  }

  #findings() {
    const { picture, state } = this;
    return picture.findings.slice(0, MOST_FINDINGS).map(({ stage, finding, step }, k) => {
      const isOpen = k === picture.finding;
      const name = step ? `${finding.name} · ${t('step_number', { number: step })}` : finding.name;
      const go = (bar) =>
        button(
          `${nameOf(stage.scene, bar)} ${stage.scene.kindName(bar)}`,
          () => state.goToTask(stage.scene, bar),
          { class: 'link' },
        );
      const memory = ([rank, buffer, start, stop]) => rangeIn(rank, buffer, start, stop);
      return [
        button(
          [h('strong', {}, markOf(state, stage.scene), name), h('span', {}, finding.message)],
          () => picture.goToFinding(k),
          { class: `found ${finding.severity}`, 'aria-pressed': String(isOpen) },
        ),
        isOpen && [
          finding.hint && h('p', {}, h('strong', {}, `${t('finding_hint')}: `), finding.hint),
          finding.source && h('p', {}, h('code', {}, finding.source)),
          listOf(finding.bars.slice(0, 200).map(go)),
          listOf(finding.memory.slice(0, 50).map(memory)),
        ],
      ];
    });
  }

  /** The chosen node: what it sends and gets in this step; in buffers, what they hold. */
  #chosen() {
    const { choice, stages } = this.picture;
    if (choice.rank === null) return [];
    return stages.map((stage) => {
      const { noun, names } = stage.steps.table;
      const mark = markOf(this.state, stage.scene);
      if (stage.isBuffers) {
        const title = t('memory_of', { rank: t('rank', { rank: choice.rank }) });
        return [h('h3', {}, mark, title), stage.buffers.table(choice.rank)];
      }
      const title = t(`node_${noun}`, { name: names[choice.rank] });
      return titled([mark, title], this.#ofNode(stage.steps, choice.rank));
    });
  }

  #ofNode(steps, node) {
    const { moves, table, now } = steps;
    const own = steps.movesOf(now).filter((k) => moves.source[k] !== moves.target[k]);
    const line = (mine, other) => {
      const some = own.filter((k) => moves[mine][k] === node);
      const names = some.slice(0, 8).map((k) => table.names[moves[other][k]]);
      const sum = formatBytes(some.reduce((bytes, k) => bytes + moves.bytes[k], 0));
      return [sum, names.length && names.join(', ')].filter(Boolean).join(' · ');
    };
    return [
      [t('sends'), line('source', 'target')],
      [t('gets'), line('target', 'source')],
    ];
  }

  #step({ steps, scene }) {
    const step = steps.list[steps.now - 1];
    if (!step) return [];
    const before = steps.now > 1 ? steps.list[steps.now - 2].end : 0;
    const lasts = step.end - step.begin;
    return titled(
      [markOf(this.state, scene), t('this_step')],
      [
        [t('time'), t('from_to', { from: formatTime(step.begin), to: formatTime(step.end) })],
        [t('lasts'), `${formatTime(lasts)} (${formatShare(lasts / scene.total)})`],
        [t('gap_before'), formatTime(Math.max(0, step.begin - before))],
        [t('transfers'), step.pairs],
        [t('rank_sends'), `${formatBytes(step.each)}, ${formatRate(step.each, lasts)}`],
      ],
    );
  }

  /** Phases with their times; of two schedules, how much longer or shorter each is. */
  #phases() {
    const { stages } = this.picture;
    const of = stages.map(phasesOf);
    const names = [...new Set(of.flatMap((phases) => [...phases.keys()]))].slice(0, MOST_PHASES);
    const rows = names.map((name) => {
      const some = of.map((phases) => phases.get(name));
      const lasts = some.map((phase) => phase && phase.end - phase.begin);
      const go = button(name || t('unlabelled'), () => this.#showPhase(some), { class: 'link' });
      return h(
        'tr',
        {},
        h('th', { scope: 'row' }, go),
        some.map((phase, k) => {
          const count = phase ? phase.stop - phase.first : 0;
          const time = formatTime(lasts[k]);
          return h('td', {}, some.length > 1 ? time : t('steps_lasting', { count, time }));
        }),
        some.length > 1 && difference(...lasts),
      );
    });
    const totals = this.state.scenes.map((scene) => scene.total);
    const heads = stages.length > 1 && [
      h('th', {}),
      ...stages.map(({ scene }) => h('td', {}, markOf(this.state, scene), formatTime(scene.total))),
      difference(...totals),
    ];
    const isMoved = Boolean(this.state.scenes[1]?.shift);
    const back = isMoved && button(t('unalign'), () => this.state.align(0, 0));
    return [
      h('h3', {}, t('the_whole')),
      h('table', { id: 'phases' }, h('tr', {}, heads), rows),
      back,
    ];
  }

  /** Go to where a phase begins; in the lanes, let both schedules begin it at one place. */
  #showPhase([a, b]) {
    const { state, picture } = this;
    if (a && b) state.align(a.begin, b.begin);
    const [phase, scene] = a ? [a, state.scenes[0]] : [b, state.scenes[1]];
    const [from, to] = [phase.begin + scene.shift, phase.end + scene.shift];
    const edge = Math.max((to - from) * 0.05, 1e-3);
    state.show(from - edge, to + edge);
    picture.goToStep(picture.stages[scene.number], phase.first + 1);
  }

  #arrived() {
    return this.picture.stages.map(({ steps, scene }) => {
      const { all, text } = steps.arrived();
      return all > 0 && h('p', {}, markOf(this.state, scene), text);
    });
  }

  /** The kinds of task that the critical path goes over, and buttons that go along it. */
  #critical() {
    const { state } = this;
    const [scene] = state.scenes;
    const { bar, begin_us, end_us } = scene.critical;
    if (!bar.length) return [h('h3', {}, t('critical')), h('p', {}, t('no_critical'))];
    const sums = new Map();
    bar.forEach((b, k) => {
      const kind = scene.kindName(b);
      sums.set(kind, (sums.get(kind) ?? 0) + end_us[k] - begin_us[k]);
    });
    const rows = [...sums].filter(([, time]) => time > 0).sort((a, b) => b[1] - a[1]);
    const at = state.criticalStep;
    const go = (word, by) =>
      button(by < 0 ? '‹' : '›', () => state.stepCritical(at + by), { title: t(word) });
    const step = at >= 0 && `${at + 1}: ${placeOf(scene, bar[at])}`;
    return [
      titled(
        [t('critical'), ' ', go('previous', -1), ' ', go('next', 1)],
        rows.map(([kind, time]) => [
          kind,
          `${formatTime(time)} (${formatShare(time / scene.total)})`,
        ]),
      ),
      h('p', { class: 'muted' }, step || t('critical_steps', { count: bar.length })),
    ];
  }

  #links() {
    return this.state.scenes.map((scene) => {
      const { links, busiestLinks } = scene;
      if (!links) return [];
      const names = (k) => links.names[k].join(' → ');
      const rows = busiestLinks
        .slice(0, MOST_LINKS)
        .map((k) => [names(k), formatShare(links.share[k])]);
      const { more } = scene.header.links;
      const note = more > 0 && h('p', { class: 'muted' }, t('links_left_out', { count: more }));
      return [titled([markOf(this.state, scene), t('busiest_links')], rows), note];
    });
  }

  #legend() {
    if (this.state.mode === 'lanes') {
      const some = LEGEND.map((name) =>
        h('li', {}, h('span', { class: `swatch ${name}` }), t(name)),
      );
      return [h('h3', {}, t('how_to_read')), h('ul', { class: 'legend' }, some)];
    }
    const { cells } = this.picture.lead.steps;
    const which = this.picture.lead.isBuffers
      ? 'buffers'
      : !cells
        ? 'nodes'
        : cells.owners
          ? 'owners'
          : cells.reduces
            ? 'sums'
            : cells.rows > 1
              ? 'table'
              : 'chunks';
    const isOfData = cells && which !== 'buffers';
    const text = [t(`legend_${which}`), isOfData && t('legend_all')].filter(Boolean).join(' ');
    return [h('h3', {}, t('how_to_read')), h('p', { class: 'muted' }, text)];
  }
}

function titled(title, rows) {
  return [h('h3', {}, title), facts(rows)];
}

function listOf(items) {
  return h(
    'ul',
    { class: 'chain' },
    items.map((item) => h('li', {}, item)),
  );
}

/** How much longer or shorter the second of two is. */
function difference(first, second) {
  const change = second - first;
  const share = first ? ` (${change > 0 ? '+' : '−'}${formatShare(Math.abs(change) / first)})` : '';
  const name = !(Math.abs(change) >= 5e-4) ? '' : change > 0 ? 'slower' : 'faster';
  return h('td', { class: name }, formatChange(change) + (Number.isFinite(change) ? share : ''));
}
