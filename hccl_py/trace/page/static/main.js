/** Read the data blocks, then show the page. */

import { Page } from './page.js';
import { Scene } from './scene.js';
import { State } from './state.js';
import { Theme } from './theme.js';
import { byId } from './dom.js';
import { decode } from './decode.js';
import { installHook } from './hook.js';
import { t } from './words.js';

async function scenesOfPage() {
  const scenes = [];
  for (const number of [0, 1]) {
    const block = byId(`scene-${number}`);
    if (!block) break;
    const { header, column } = await decode(block.textContent);
    block.remove(); // its memory is needed no more
    scenes.push(new Scene(number, header, column));
  }
  return scenes;
}

async function open() {
  const theme = new Theme();
  byId('message').textContent = t('loading');
  const scenes = await scenesOfPage();
  byId('app').hidden = false;
  const state = new State(scenes, theme);
  const page = new Page(state);
  page.resize();
  byId('message').hidden = true;
  installHook(state, page, performance.now());
}

open().catch((error) => {
  byId('message').textContent = t('failed', { why: error.message });
  throw error;
});
