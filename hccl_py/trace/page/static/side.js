/** The side of the picture: findings, the chosen node, this step, the whole, how to read it. */

import { byId, h } from './dom.js';
import { count } from './steps.js';
import { formatBytes, formatRate, formatShare, formatTime } from './format.js';
import { t } from './words.js';

export class Side {
  constructor(picture) {
    const { scene, steps, stage } = picture;
    Object.assign(this, { picture, scene, steps, stage });
  }

  /** The parts that are where they shall be in the end, of all of them. */
  arrived() {
    const { cells } = this.steps;
    if (!cells) return { have: 0, all: 0, text: '' };
    let [have, all] = [0, 0];
    cells.wanted.forEach((wanted, rank) => {
      const { now } = this.steps.held(rank);
      for (let column = 0; column < cells.columns; column++) {
        const need = count(cells, wanted, column);
        const has = count(cells, wanted & now, column);
        all += cells.reduces ? need > 0 : need;
        have += cells.reduces ? need > 0 && has === need : has;
      }
    });
    return { have, all, text: t(cells.reduces ? 'sums_arrived' : 'blocks_arrived', { have, all }) };
  }

  draw() {
    const { steps, scene, stage } = this;
    const step = steps.list[steps.now - 1];
    const facts = (title, rows) => [
      h('h3', {}, title),
      h(
        'dl',
        {},
        rows.map(([name, value]) => [h('dt', {}, name), h('dd', {}, value)]),
      ),
    ];
    const parts = [this.#findingButtons()];
    if (stage.rank !== null && step)
      parts.push(
        facts(
          t(`node_${steps.table.noun}`, { name: steps.table.names[stage.rank] }),
          this.#ofNode(stage.rank),
        ),
      );
    if (step) {
      const before = steps.now > 1 ? steps.list[steps.now - 2].end : 0;
      parts.push(
        facts(t('this_step'), [
          [t('time'), t('from_to', { from: formatTime(step.begin), to: formatTime(step.end) })],
          [
            t('lasts'),
            `${formatTime(step.end - step.begin)} (${formatShare((step.end - step.begin) / scene.total)})`,
          ],
          [t('gap_before'), formatTime(Math.max(0, step.begin - before))],
          [t('transfers'), step.pairs],
          [
            t('rank_sends'),
            `${formatBytes(step.each)}, ${formatRate(step.each, step.end - step.begin)}`,
          ],
        ]),
      );
    }
    const phases = new Map();
    for (const { phase, begin, end } of steps.list) {
      const [first, , number] = phases.get(phase) ?? [begin, 0, 0];
      phases.set(phase, [first, end, number + 1]);
    }
    const rows = [...phases]
      .slice(0, 8)
      .map(([name, [begin, end, number]]) => [
        name || t('unlabelled'),
        t('steps_lasting', { number, time: formatTime(end - begin) }),
      ]);
    const { all, text } = this.arrived();
    parts.push(facts(t('the_whole'), rows), all ? h('p', {}, text) : null);
    if (scene.links) {
      const busiest = scene.busiestLinks
        .slice(0, 3)
        .map((k) => [scene.links.names[k].join(' → '), formatShare(scene.links.share[k])]);
      parts.push(facts(t('busiest_links'), busiest));
    }
    parts.push(facts(t('facts'), scene.header.facts));
    parts.push(h('h3', {}, t('how_to_read')), h('p', { class: 'muted' }, this.#legend()));
    byId('side').replaceChildren(...parts.flat(Infinity).filter(Boolean));
  }

  #findingButtons() {
    const { findings, steps } = this.scene;
    return findings.slice(0, 20).map((finding, k) =>
      h(
        'button',
        {
          type: 'button',
          class: `found ${finding.severity}`,
          'aria-pressed': String(k === this.picture.finding),
          onclick: () => this.picture.goToFinding(k),
        },
        h(
          'strong',
          {},
          finding.name,
          steps.table.findings[k]
            ? ` · ${t('step_number', { number: steps.table.findings[k] })}`
            : '',
        ),
        h('span', {}, finding.message),
      ),
    );
  }

  /** What a node sends and gets in this step. */
  #ofNode(node) {
    const { moves } = this.steps;
    const own = this.steps
      .movesOf(this.steps.now)
      .filter((k) => moves.source[k] !== moves.target[k]);
    const line = (mine, other) => {
      const some = own.filter((k) => moves[mine][k] === node);
      const names = some.slice(0, 8).map((k) => this.steps.table.names[moves[other][k]]);
      return `${formatBytes(some.reduce((sum, k) => sum + moves.bytes[k], 0))}${names.length ? ` · ${names.join(', ')}` : ''}${some.length > 8 ? ' …' : ''}`;
    };
    return [
      [t('sends'), line('source', 'target')],
      [t('gets'), line('target', 'source')],
    ];
  }

  #legend() {
    const { cells } = this.steps;
    if (!cells) return t('legend_nodes');
    const which = cells.owners
      ? 'owners'
      : cells.reduces
        ? 'sums'
        : cells.rows > 1
          ? 'table'
          : 'chunks';
    return `${t(`legend_${which}`)} ${t('legend_all')}`;
  }
}
