/** Phases of a whole schedule: all runs of tasks with one label in one round, on any stream. */

/**
 * @returns {Map<string, {label: string, round: number, begin: number, end: number, lanes: number}>}
 *   in the order in which they begin
 */
export function phasesOf(scene) {
  const found = new Map();
  const { label, round, start_us, end_us } = scene.phases;
  for (let k = 0; k < label.length; k++) {
    const name = label[k] >= 0 ? scene.labels[label[k]] : '';
    const key = `${round[k]} ${name}`;
    const known = found.get(key);
    if (known) {
      known.begin = Math.min(known.begin, start_us[k]);
      known.end = Math.max(known.end, end_us[k]);
      known.lanes++;
    } else {
      found.set(key, {
        label: name,
        round: round[k],
        begin: start_us[k],
        end: end_us[k],
        lanes: 1,
      });
    }
  }
  return new Map([...found].sort(([, a], [, b]) => a.begin - b.begin || a.end - b.end));
}

/** Phases of one scene, or of two beside each other where they have the same label and round. */
export function phaseRows(scenes) {
  const [first, second] = scenes.map(phasesOf);
  const rows = [...first].map(([key, a]) => ({ key, a, b: second?.get(key) }));
  for (const [key, b] of second ?? []) if (!first.has(key)) rows.push({ key, a: undefined, b });
  return rows;
}
