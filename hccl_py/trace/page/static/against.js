/** Two schedules beside each other: their phases, and the places of one's steps in the other's. */

/**
 * @returns {Map<string, {begin: number, end: number, first: number, stop: number}>} phases of a
 *   schedule by name, in the order of their first steps: their times, and their places in steps
 */
export function phasesOf({ steps }) {
  const found = new Map();
  steps.list.forEach(({ phase, begin, end }, k) => {
    const known = found.get(phase) ?? { begin, end, first: k, stop: k };
    found.set(phase, { ...known, end: Math.max(known.end, end), stop: k + 1 });
  });
  return found;
}

/** Pairs of places that belong together: the ends of phases that both have, in the same order. */
export function meetings(lead, other) {
  const [ours, theirs] = [phasesOf(lead), phasesOf(other)];
  const knots = [[0, 0]];
  const add = (a, b) => {
    const [x, y] = knots.at(-1);
    if (a > x && b > y) knots.push([a, b]);
  };
  for (const [name, a] of ours) {
    const b = theirs.get(name);
    if (!b) continue;
    add(a.first, b.first);
    add(a.stop, b.stop);
  }
  add(lead.steps.count, other.steps.count);
  return knots;
}

/** The place that belongs to a place of one side of knots, between knots in proportion. */
export function mapped(knots, place, from) {
  const to = 1 - from;
  const k = Math.max(
    1,
    knots.findIndex((knot) => knot[from] >= place),
  );
  const [low, high] = [knots[k - 1], knots[k] ?? knots[k - 1]];
  const span = high[from] - low[from];
  return low[to] + (span ? ((place - low[from]) / span) * (high[to] - low[to]) : 0);
}
