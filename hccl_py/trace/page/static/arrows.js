/** From which posts to which waits arrows are drawn: what the selected task hangs on, and what hangs
 *  on it, as many steps far as the user asked for. */

import { POST, STUCK, WAIT } from './scene.js';

const MOST = 400;
const FAR = 256;

/**
 * @returns {{post: number, wait: number, steps: number}[]} steps: how far from the selection, from 0
 */
export function arrowsOf(state) {
  if (!state.selected) return [];
  const { scene, bar } = state.selected;
  const found = new Map();
  followBack(scene, bar, state.depth, found);
  followOn(scene, bar, state.depth, found);
  return [...found.values()];
}

/** The post that a task waited for: its own, or that of the last wait before it on its stream. */
function followBack(scene, bar, depth, found) {
  let at = bar;
  for (let steps = 0; steps < depth && found.size < MOST; steps++) {
    const wait = waitBefore(scene, at, steps > 0 || scene.classOf[at] === POST ? 1 : 0);
    if (wait < 0) return;
    const post = scene.bars.partner[wait];
    if (post < 0) return;
    found.set(`${post}`, { post, wait, steps });
    at = post;
  }
}

/** The posts behind a task on its stream, up to the next wait: other tasks wait for these. */
function followOn(scene, bar, depth, found) {
  let border = [bar];
  for (let steps = 0; steps < depth && border.length; steps++) {
    const next = [];
    for (const at of border) {
      for (const post of postsBehind(scene, at, steps > 0 || isWait(scene, at))) {
        const wait = scene.bars.partner[post];
        if (wait < 0 || found.has(`${post}`) || found.size >= MOST) continue;
        found.set(`${post}`, { post, wait, steps });
        next.push(wait);
      }
    }
    border = next;
  }
}

function isWait(scene, bar) {
  return scene.classOf[bar] === WAIT || scene.classOf[bar] === STUCK;
}

function waitBefore(scene, bar, skip) {
  const first = scene.laneFirst[scene.bars.lane[bar]];
  for (let at = bar - skip; at >= Math.max(first, bar - FAR); at--) {
    if (isWait(scene, at)) return at;
  }
  return -1;
}

function postsBehind(scene, bar, skipOwn) {
  if (scene.classOf[bar] === POST && !skipOwn) return [bar];
  const stop = Math.min(scene.laneFirst[scene.bars.lane[bar] + 1], bar + FAR);
  const found = [];
  for (let at = bar + 1; at < stop; at++) {
    if (isWait(scene, at)) break;
    if (scene.classOf[at] === POST) found.push(at);
  }
  return found;
}
