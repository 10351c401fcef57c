/** Traffic from rank to rank as a square of cells, of blocks of ranks where there are many. */

export const MOST_CELLS = 64;

/**
 * @param {number} low first rank that is looked at
 * @param {number} count ranks from there on
 * @returns {{size: number, cells: number, bytes: Float64Array, share: Float64Array}} `size` ranks a
 *   side of each cell; `share` is the largest of a cell's pairs
 */
export function trafficCells(scene, low, count) {
  const size = Math.ceil(count / MOST_CELLS);
  const cells = Math.ceil(count / size);
  const bytes = new Float64Array(cells * cells);
  const share = new Float64Array(cells * cells);
  const { traffic } = scene;
  for (let k = 0; k < traffic.source.length; k++) {
    const from = traffic.source[k] - low;
    const to = traffic.target[k] - low;
    if (from < 0 || to < 0 || from >= count || to >= count) continue;
    const at = Math.floor(from / size) * cells + Math.floor(to / size);
    bytes[at] += traffic.bytes[k];
    share[at] = Math.max(share[at], traffic.share[k] || 0);
  }
  return { size, cells, bytes, share };
}
