/** The head of the page: what is shown, and the buttons. */

import { byId, h } from './dom.js';
import { formatCount, formatTime } from './format.js';
import { t } from './words.js';
import { LETTERS } from './mark.js';

/** Facts that stand in the head. */
const HEADED = ['executor', 'topology'];
const LEGEND = ['transfer', 'copy', 'reduce', 'compute', 'wait', 'post'];
const LEGEND_OF_STUCK = ['transfer', 'copy', 'reduce', 'wait', 'post', 'stuck_wait'];

/** Names of two scenes without what they begin with alike. */
function differing(scenes) {
  const parts = scenes.map((scene) => scene.name.split(' · '));
  const isAlike = parts[0][0] === parts[1][0] && parts.every((part) => part.length > 1);
  return parts.map((part) => (isAlike ? part.slice(1) : part).join(' · '));
}

export class Toolbar {
  constructor(state, page) {
    this.state = state;
    this.page = page;
  }

  draw() {
    this.#drawHead();
    this.#drawTools();
    const isStuck = this.state.scenes.some((scene) => scene.bars.state.includes(1));
    byId('legend').replaceChildren(
      ...(isStuck ? LEGEND_OF_STUCK : LEGEND).map((name) =>
        h('span', {}, h('span', { class: `swatch ${name}` }), t(name)),
      ),
    );
  }

  #drawHead() {
    const { page } = this;
    const { scenes } = this.state;
    byId('title').replaceChildren(
      ...scenes.flatMap((scene, number) => [
        number ? h('span', { class: 'muted' }, ' / ') : '',
        scenes.length > 1 ? h('span', { class: `mark mark-${number}` }, LETTERS[number]) : '',
        h(
          'span',
          { class: 'name', title: scene.name },
          scenes.length > 1 ? differing(scenes)[number] : scene.header.title,
        ),
      ]),
    );
    const chip = (text, title) => h('span', { class: 'fact', title: title ?? text }, text);
    const ofEach = (said) => [...new Set(scenes.map(said))].join(' / ');
    const clocks = ofEach((scene) => t(`clock_${scene.header.clock}`));
    const { findings, header } = scenes[0];
    const errors = findings.filter(({ severity }) => severity === 'error').length;
    const verdict = errors
      ? h(
          'button',
          { type: 'button', class: 'verdict bad', onclick: () => page.toFinding() },
          `✗ ${t('errors', { count: errors })}`,
        )
      : header.verified && h('span', { class: 'verdict good' }, `✓ ${t('verified')}`);
    const headed = HEADED.map((wanted) => [
      wanted,
      ofEach(({ header }) => header.facts.find(([name]) => name === wanted)?.[1] ?? '–'),
    ]);
    byId('facts').replaceChildren(
      chip(scenes.map((scene) => formatTime(scene.total)).join(' / '), clocks),
      ...(verdict ? [verdict] : []),
      chip(clocks),
      chip(t('ranks', { count: ofEach((scene) => formatCount(scene.ranks.length)) })),
      chip(t('tasks', { count: scenes.map((scene) => formatCount(scene.size)).join(' / ') })),
      ...headed
        .filter(([, value]) => value !== '–')
        .map(([name, value]) => chip(value, `${name}: ${value}`)),
    );
  }

  #drawTools() {
    const { state, page } = this;
    const had = document.activeElement?.dataset?.tool;
    const button = (name, text, title, action, pressed) =>
      h(
        'button',
        {
          type: 'button',
          'data-tool': name,
          title: t(title),
          'aria-label': t(title),
          'aria-pressed': pressed === undefined ? null : String(pressed),
          onclick: action,
        },
        text,
      );
    const separator = () => h('span', { class: 'separator' });
    const ofLanes = [
      button('zoom-in', '+', 'zoom_in', () => state.zoom(0.6)),
      button('zoom-out', '−', 'zoom_out', () => state.zoom(1 / 0.6)),
      button('fit', '⤢', 'zoom_fit', () => state.fit()),
      separator(),
      button('fold', '▸', 'fold_all', () => page.foldAll(true)),
      button('unfold', '▾', 'unfold_all', () => page.foldAll(false)),
      separator(),
      button(
        'critical',
        t('critical'),
        'critical_title',
        () => state.toggleCritical(),
        state.critical,
      ),
      separator(),
    ];
    const isLanes = state.mode === 'lanes';
    byId('tools').replaceChildren(
      button('mode', t(isLanes ? 'to_picture' : 'to_lanes'), 'mode_title', () =>
        state.setMode(isLanes ? 'picture' : 'lanes'),
      ),
      ...(isLanes ? ofLanes : []),
      button('language', t('language'), 'language_title', () => page.switchLanguage()),
      button('theme', state.theme.name === 'dark' ? '☀' : '☾', 'theme_title', () =>
        state.theme.toggle(),
      ),
      button('help', '?', 'help_title', () => page.keys.toggleHelp()),
    );
    if (had) byId('tools').querySelector(`[data-tool="${had}"]`)?.focus();
  }
}
