/** Find tasks: every word of a query must fit; a word fits a kind, a notify, a label, a source line,
 *  a lane's name, or names ranks (`r3`), peers (`peer:3`), streams (`s1`), rounds or addresses. */

const FIELDS = ['kind', 'notify', 'label', 'source', 'lane', 'buffer'];

/**
 * @param {import('./scene.js').Scene} scene
 * @param {string} query
 * @returns {Int32Array} bars that fit, ascending
 */
export function search(scene, query) {
  const tests = query
    .toLowerCase()
    .split(/\s+/)
    .filter(Boolean)
    .map((word) => testOf(scene, word));
  if (!tests.length) return new Int32Array(0);
  const found = new Int32Array(scene.size);
  let count = 0;
  for (let bar = 0; bar < scene.size; bar++) {
    let fits = true;
    for (let k = 0; fits && k < tests.length; k++) fits = tests[k](bar);
    if (fits) found[count++] = bar;
  }
  return found.slice(0, count);
}

function testOf(scene, word) {
  const { bars } = scene;
  const number = (pattern) => Number(word.match(pattern)[1]);
  if (/^r(?:ank)?:?\d+$/.test(word)) {
    const rank = number(/(\d+)$/);
    return (bar) => scene.laneRank[bars.lane[bar]] === rank;
  }
  if (/^s(?:tream)?:?\d+$/.test(word)) {
    const stream = number(/(\d+)$/);
    return (bar) => scene.laneStream[bars.lane[bar]] === stream;
  }
  if (/^peer:\d+$/.test(word)) return equals(bars.peer, number(/(\d+)$/));
  if (/^round:\d+$/.test(word)) return equals(bars.round, number(/(\d+)$/) - 1);
  if (/^#\d+$/.test(word)) return equals(bars.number, number(/(\d+)$/));
  if (/^(?:0x[0-9a-f]+|@\d+)$/.test(word)) return touches(scene, Number(word.replace('@', '')));
  return textTest(scene, word);
}

function equals(column, wanted) {
  return (bar) => column[bar] === wanted;
}

/** Tasks that read or write the byte at an offset of some buffer. */
function touches(scene, at) {
  const { src_buffer, src_offset, dst_buffer, dst_offset, size } = scene.bars;
  return (bar) =>
    (src_buffer[bar] >= 0 && src_offset[bar] <= at && at < src_offset[bar] + size[bar]) ||
    (dst_buffer[bar] >= 0 && dst_offset[bar] <= at && at < dst_offset[bar] + size[bar]);
}

/** Texts are looked through once each; what is asked of every task is a look-up. */
function textTest(scene, word) {
  const { bars } = scene;
  const [, field, text] = word.match(/^(?:(kind|notify|label|source|lane|buffer):)?(.*)$/s);
  const flags = (texts) => Uint8Array.from(texts, (one) => one.toLowerCase().includes(text));
  const of = {
    kind: [bars.kind, () => flags(scene.header.kinds.map((kind) => kind.name))],
    notify: [bars.notify, () => flags(scene.notifies)],
    label: [bars.label, () => flags(scene.labels)],
    source: [bars.source, () => flags(scene.sources)],
    lane: [bars.lane, () => flags(scene.laneNames)],
  };
  const tests = (field ? [field] : FIELDS).flatMap((name) => {
    if (name === 'buffer')
      return bufferTest(scene, flags(scene.header.buffer_words), Boolean(field));
    const fits = of[name][1]();
    return fits.some(Boolean)
      ? [(bar) => of[name][0][bar] >= 0 && fits[of[name][0][bar]] === 1]
      : [];
  });
  return (bar) => tests.some((test) => test(bar));
}

/** Buffers are looked at only where they are asked for: half of all tasks touch CCL_In. */
function bufferTest(scene, fits, isAsked) {
  const { src_buffer, dst_buffer } = scene.bars;
  if (!isAsked) return [];
  return [(bar) => fits[src_buffer[bar]] === 1 || fits[dst_buffer[bar]] === 1];
}
