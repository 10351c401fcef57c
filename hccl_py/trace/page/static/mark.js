/** The letters of two schedules that are compared. */

import { h } from './dom.js';

export const LETTERS = 'AB';

/** The letter of a scene on its colour; nothing where there is only one scene. */
export function markOf(state, scene) {
  if (state.scenes.length < 2) return null;
  return h('span', { class: `mark mark-${scene.number}` }, LETTERS[scene.number]);
}
