/** The head of the page: what is shown, and the buttons. */

import { button, byId, h } from './dom.js';
import { formatCount, formatTime } from './format.js';
import { t } from './words.js';
import { markOf } from './mark.js';

/** Facts that stand in the head. */
const HEADED = ['executor', 'topology'];

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
  }

  #drawHead() {
    const { page } = this;
    const { scenes } = this.state;
    byId('title').replaceChildren(
      ...scenes.flatMap((scene, number) => [
        number ? h('span', { class: 'muted' }, ' / ') : '',
        markOf(this.state, scene) ?? '',
        h(
          'span',
          { class: 'name', title: scene.name },
          scenes.length > 1 ? differing(scenes)[number] : scene.said.title,
        ),
      ]),
    );
    const chip = (text, title) => h('span', { class: 'fact', title: title ?? text }, text);
    const ofEach = (said) => [...new Set(scenes.map(said))].join(' / ');
    const clocks = ofEach((scene) => t(`clock_${scene.header.clock}`));
    const { length } = page.picture.errors;
    const verdict = length
      ? button(`✗ ${t('errors', { count: length })}`, () => page.toFinding(), {
          class: 'verdict bad',
        })
      : scenes.every(({ header }) => header.verified) &&
        h('span', { class: 'verdict good' }, `✓ ${t('verified')}`);
    const headed = HEADED.map((wanted) => [
      wanted,
      ofEach((scene) => scene.fact(wanted) ?? '–'),
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
    const tool = (name, text, title, action, pressed) =>
      button(text, action, {
        ...{ 'data-tool': name, title: t(title), 'aria-label': t(title) },
        'aria-pressed': pressed === undefined ? null : String(pressed),
      });
    const separator = () => h('span', { class: 'separator' });
    const { isLanes } = page;
    const ofLanes = [
      tool('zoom-in', '+', 'zoom_in', () => state.zoom(0.6)),
      tool('zoom-out', '−', 'zoom_out', () => state.zoom(1 / 0.6)),
      tool('fit', '⤢', 'zoom_fit', () => state.fit()),
      separator(),
      tool('fold', '▸', 'fold_all', () => page.foldAll(true)),
      tool('unfold', '▾', 'unfold_all', () => page.foldAll(false)),
      separator(),
    ];
    const { critical, theme } = state;
    byId('tools').replaceChildren(
      tool('mode', t(isLanes ? 'to_picture' : 'to_lanes'), 'mode_title', () => state.toggleMode()),
      ...(isLanes ? ofLanes : []),
      tool('critical', t('critical'), 'critical_title', () => state.toggleCritical(), critical),
      separator(),
      tool('language', t('language'), 'language_title', () => page.switchLanguage()),
      tool('theme', theme.name === 'dark' ? '☀' : '☾', 'theme_title', () => theme.toggle()),
      tool('help', '?', 'help_title', () => page.keys.toggleHelp()),
    );
    if (had) byId('tools').querySelector(`[data-tool="${had}"]`)?.focus();
  }
}
