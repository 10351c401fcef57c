/** Typed columns out of a data block of the page: base64, gzip, a JSON header, then the columns. */

const TYPES = {
  i1: Int8Array,
  i2: Int16Array,
  i4: Int32Array,
  f4: Float32Array,
  f8: Float64Array,
};

/**
 * Decode one data block.
 * @param {string} text base64 of gzip of: header length (u32), header (UTF-8 JSON), columns
 * @returns {Promise<{header: object, column: function(string): ArrayLike<number>}>}
 */
export async function decode(text) {
  const buffer = await inflated(fromBase64(text.trim()));
  const length = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  const base = 4 + length;
  const column = (name) => columnOf(buffer, base, header.columns[name], name);
  return { header, column };
}

function fromBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return bytes;
}

function inflated(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Response(stream).arrayBuffer();
}

/** A column lies byte plane by byte plane (all lowest bytes first): gzip packs that better. */
function columnOf(buffer, base, entry, name) {
  if (!entry) throw new Error(`The page has no column ${name}.`);
  const Type = TYPES[entry.type];
  if ('constant' in entry) return new Type(entry.length).fill(entry.constant);
  const size = Type.BYTES_PER_ELEMENT;
  const planes = new Uint8Array(buffer, base + entry.offset, entry.length * size);
  if (size === 1) return new Type(planes.slice().buffer);
  const bytes = new Uint8Array(entry.length * size);
  for (let k = 0; k < size; k++) {
    for (let i = 0, from = k * entry.length, to = k; i < entry.length; i++, from++, to += size) {
      bytes[to] = planes[from];
    }
  }
  return new Type(bytes.buffer);
}
