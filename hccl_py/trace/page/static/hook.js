/** `window.hcclPage`: what the page shows, for tests and for the console. It changes nothing. */

import { arrowsOf } from './arrows.js';
import { boxOf } from './marks.js';
import { languageName } from './words.js';

export function installHook(state, page, opened) {
  const hook = {
    /** The contents of the screen, as plain values. */
    state: () => ({
      scenes: state.scenes.map((scene) => ({
        title: scene.said.title,
        tasks: scene.size,
        lanes: scene.laneRank.length,
        ranks: scene.ranks.length,
        total: scene.total,
        shift: scene.shift,
        findings: scene.findings.length,
        critical: [...scene.critical.bar],
      })),
      view: { from: state.view.from, to: state.view.to },
      selected: state.selected && { scene: state.selected.scene.number, bar: state.selected.bar },
      arrows: arrowsOf(state).map(({ post, wait }) => [post, wait]),
      rows: [...state.rows.pinnedRows, ...state.rows.rows].map((row) => ({
        kind: row.kind,
        scene: row.scene.number,
        rank: row.scene.ranks[row.k],
        lane: row.lane,
        pinned: row.pinned,
      })),
      cursor: state.cursor,
      critical: state.critical,
      criticalStep: state.criticalStep,
      found: state.found && { count: state.found.ordered.length, at: page.search.at },
      mode: state.mode,
      steps: page.picture.stages.map(({ steps }) => steps.now),
      place: page.picture.lead.steps.place,
      rank: page.picture.choice.rank,
      chunk: page.picture.choice.chunk,
      buffers: page.picture.choice.isBuffers,
      language: languageName(),
      theme: state.theme.name,
      draws: page.lanes.draws,
    }),
    /** A task's columns, and where it is on the screen. */
    task: (bar, number = 0) => {
      const scene = state.scenes[number];
      const found = Object.fromEntries(
        Object.entries(scene.bars).map(([name, c]) => [name, c[bar]]),
      );
      return { ...found, rank: scene.rankOf(bar), kindName: scene.kindName(bar) };
    },
    where: (bar, number = 0) => {
      const box = boxOf(page.lanes, state.scenes[number], bar);
      const canvas = page.lanes.canvas.getBoundingClientRect();
      return (
        box && {
          x: canvas.left + box.x,
          y: canvas.top + box.y,
          width: box.width,
          height: box.height,
        }
      );
    },
    /** The contents of a rank's memory at the cursor: [buffer, start, stop, origins]. */
    memory: (rank, number = 0) => {
      const { buffers, scene } = page.picture.stages[number];
      return buffers
        .at(rank)
        .flatMap((segments, buffer) =>
          segments.map(({ start, stop, content }) => [
            ...[scene.buffers[buffer], start, stop, buffers.memory.originsOf(content)],
          ]),
        );
    },
    /** What can be clicked on a stage, and the milliseconds that drawing it takes. */
    stage: (number = 0) => page.picture.stages[number].hot,
    measureStage: () => {
      const began = performance.now();
      page.picture.stages[0].draw();
      return performance.now() - began;
    },
    /** The cells of the heat map. */
    traffic: () => {
      const { cells, size, bytes } = page.side.heat.cells;
      return { cells, size, bytes: [...bytes] };
    },
    /** Milliseconds from navigation to the first picture, and of the last picture of the lanes. */
    timings: () => ({ opened, draw: page.lanes.lastDraw }),
    /** Draw now and say how many milliseconds it took, all of the page's parts together. */
    measure: () => page.measure(),
  };
  Object.defineProperty(window, 'hcclPage', { value: Object.freeze(hook) });
}
