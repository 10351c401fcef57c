/** Curves of arrows between cards: each is a begin, a control point and an end. */

/** The curve of a move between two cards of a stage. */
export function curveOf(stage, source, target) {
  const { wide, high, width, height } = stage;
  const isRing = stage.steps.table.seats.kind === 'ring';
  const [a, b] = [stage.at[source], stage.at[target]];
  const [dx, dy] = [b[0] - a[0], b[1] - a[1]];
  const middle = [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2];
  if (!isRing && Math.abs(dy) < 1) return bow(a, b, wide, high);
  let control = [middle[0] - dy * 0.14, middle[1] + dx * 0.14];
  if (isRing) {
    const [cx, cy] = [width / 2, height / 2];
    const pull = Math.hypot(dx, dy) > 0.45 * Math.min(cx, cy) ? 0.26 : 0.05;
    control = [
      middle[0] * (1 - pull) + cx * pull - dy * 0.07,
      middle[1] * (1 - pull) + cy * pull + dx * 0.07,
    ];
  } else if (Math.abs(dx) < 1)
    control = [a[0] + Math.sign(dy) * (wide / 2 + Math.abs(dy) * 0.1), middle[1]];
  const cut = (p) => {
    const [x, y] = [control[0] - p[0], control[1] - p[1]];
    const part = Math.min(
      (wide / 2 + 4) / Math.abs(x || 1e-9),
      (high / 2 + 4) / Math.abs(y || 1e-9),
      0.85,
    );
    return [p[0] + x * part, p[1] + y * part];
  };
  return [cut(a), control, cut(b)];
}

/** A curve between cards of one row: above them to the right, below them to the left. */
function bow(a, b, wide, high) {
  const way = Math.sign(b[0] - a[0]);
  const edge = a[1] - way * (high / 2 + 3);
  const rise = Math.min(Math.abs(b[0] - a[0]) * 0.3, high * 1.1) + 8;
  const [from, to] = [a[0] + way * wide * 0.2, b[0] - way * wide * 0.2];
  return [
    [from, edge],
    [(from + to) / 2, edge - way * rise],
    [to, edge],
  ];
}

/** The point of a curve at a part of its way. */
export function pointOf([a, c, b], part) {
  const rest = 1 - part;
  return [0, 1].map((k) => rest * rest * a[k] + 2 * rest * part * c[k] + part * part * b[k]);
}

/** How far a point is from a curve. */
export function farFrom(curve, x, y) {
  let near = Infinity;
  for (let part = 0.05; part < 1; part += 0.06) {
    const [px, py] = pointOf(curve, part);
    near = Math.min(near, Math.hypot(px - x, py - y));
  }
  return near;
}
