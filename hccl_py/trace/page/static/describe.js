/** Tasks in words. */

import { COMPUTE, POST, STUCK, WAIT } from './scene.js';
import { formatBytes, formatTime, shortBytes } from './format.js';
import { t } from './words.js';

/** `rank 3 sub 1`, from a bar. */
export function placeOf(scene, bar) {
  const lane = scene.bars.lane[bar];
  return `${t('rank', { rank: scene.laneRank[lane] })} ${scene.laneName(lane)}`;
}

/** `rank 3 sub 1 #4`. */
export function nameOf(scene, bar) {
  return `${placeOf(scene, bar)} #${scene.bars.number[bar]}`;
}

export function notifyOf(scene, bar) {
  return textAt(scene.notifies, scene.bars.notify[bar]);
}

export function textAt(texts, number) {
  return number >= 0 ? texts[number] : '';
}

/** The forms of a task from long to short, for as much room as there is. */
export function formsOf(scene, bar) {
  const { bars } = scene;
  const kind = scene.kindName(bar);
  const c = scene.classOf[bar];
  if (c === WAIT || c === STUCK || c === POST) {
    const notify = notifyOf(scene, bar);
    const whom = whomOf(scene, bar);
    const arrow = c === POST ? '▸' : '◂';
    const verb = c === POST ? 'post' : 'wait';
    return [`${verb} ${notify} ${arrow}${whom}`, `${verb} ${arrow}${whom}`, `${arrow}${whom}`];
  }
  if (c === COMPUTE) {
    const time = formatTime(bars.end_us[bar] - bars.start_us[bar]);
    const label = textAt(scene.labels, bars.label[bar]);
    return [`${label || kind} ${time}`, label || kind];
  }
  const size = shortBytes(bars.size[bar]);
  const from = bars.src_rank[bar];
  const to = bars.dst_rank[bar];
  const own = scene.rankOf(bar);
  const away = from !== own ? ` ◂r${from}` : to !== own ? ` ▸r${to}` : '';
  const src = bufferAt(scene, bars.src_buffer[bar]);
  const dst = bufferAt(scene, bars.dst_buffer[bar]);
  return [
    `${kind} ${size}${away} ${src}→${dst}`,
    `${kind} ${size}${away}`,
    `${kind}${away}`,
    away.trim() || kind,
  ];
}

/** Whom a wait waits for, or whom a post is for: a rank, or a stream of the same one. */
function whomOf(scene, bar) {
  const other = scene.bars.partner[bar];
  if (other < 0) return scene.bars.peer[bar] >= 0 ? `r${scene.bars.peer[bar]}` : '?';
  const rank = scene.rankOf(other);
  const lane = scene.bars.lane[other];
  return rank === scene.rankOf(bar) ? scene.laneName(lane) : `r${rank}`;
}

export function bufferAt(scene, number) {
  return number >= 0 ? scene.header.buffer_words[number] : '';
}

/** `rank 3 CCL_Out [0 B, 256 KiB)`. */
export function rangeIn(rank, buffer, start, stop) {
  const [from, to] = [formatBytes(start), formatBytes(stop)];
  return t('range', { rank: t('rank', { rank }), buffer, start: from, stop: to });
}

export function rangeOf(scene, rank, buffer, start, stop) {
  return rangeIn(rank, bufferAt(scene, buffer), start, stop);
}

/** The lines of a tooltip: what, where, when, and whom it waits for. */
export function shortLines(scene, bar) {
  const { bars } = scene;
  const lines = [formsOf(scene, bar)[0], nameOf(scene, bar)];
  const start = bars.start_us[bar];
  const end = bars.end_us[bar];
  if (bars.state[bar] === 1) lines.push(t('stuck'));
  else lines.push(`${formatTime(end - start)} · ${formatTime(start)} – ${formatTime(end)}`);
  if (bars.effect_us[bar] > end)
    lines.push(t('arrives', { time: formatTime(bars.effect_us[bar]) }));
  const other = bars.partner[bar];
  if (scene.classOf[bar] === WAIT && other >= 0) {
    lines.push(t('waits_for_words', { whom: nameOf(scene, other) }));
  }
  const label = textAt(scene.labels, bars.label[bar]);
  if (label) lines.push(`${t('label')}: ${label}`);
  return lines;
}

/** A step in one sentence. */
export function sentenceOf({ clauses, ending }) {
  const parts = clauses.map(({ scope, key, who, values }) => {
    const noun = t(`noun_${who}`);
    return t(`scope_${scope}`) + t(`rule_${key}`, { who: noun, ...values });
  });
  if (ending) parts.push(t(`ending_${ending}`));
  const text = parts.join(t('clause_mark'));
  return text && text[0].toUpperCase() + text.slice(1) + t('full_stop');
}
