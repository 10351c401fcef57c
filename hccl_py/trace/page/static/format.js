/** Numbers as people read them. */

/** Microseconds with a unit that fits; `span` says how finely moments must be told apart. */
export function formatTime(us, span = 0) {
  if (!Number.isFinite(us)) return '–';
  const size = Math.max(Math.abs(us), 1e-9);
  const [unit, factor] = size >= 1e6 ? ['s', 1e-6] : size >= 1e3 ? ['ms', 1e-3] : ['µs', 1];
  const value = us * factor;
  let digits = Math.abs(value) >= 100 ? 1 : Math.abs(value) >= 10 ? 2 : 3;
  if (span > 0) {
    const fine = Math.ceil(-Math.log10((span * factor) / 1000));
    digits = Math.min(9, Math.max(0, fine));
  }
  return `${trimmed(value.toFixed(digits))} ${unit}`;
}

/** A difference of times, with its sign. */
export function formatChange(us) {
  if (!Number.isFinite(us)) return '–';
  if (Math.abs(us) < 5e-4) return '±0';
  return (us > 0 ? '+' : '−') + formatTime(Math.abs(us));
}

function trimmed(text) {
  return text.includes('.') ? text.replace(/\.?0+$/, '') : text;
}

/** Bytes in K, M, G of 1024, exact where that is short. */
export function formatBytes(bytes) {
  if (!(bytes >= 0)) return '–';
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let unit = 0;
  let value = bytes;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  const text = Number.isInteger(value) ? String(value) : value.toFixed(value < 10 ? 2 : 1);
  return `${text} ${units[unit]}`;
}

/** The short form that fits into a bar: 256K. */
export function shortBytes(bytes) {
  return formatBytes(bytes).replace(/ (.).*$/, (_, unit) => (unit === 'B' ? '' : unit));
}

export function formatShare(share) {
  if (!Number.isFinite(share)) return '–';
  const percent = share * 100;
  return `${percent >= 10 || percent === 0 ? percent.toFixed(0) : percent.toFixed(1)} %`;
}

/** 1 234 567: thin spaces between thousands. */
export function formatCount(count) {
  return String(count).replace(/\B(?=(\d{3})+$)/g, '\u202f');
}

/** Bytes per second of `bytes` in `us`. */
export function formatRate(bytes, us) {
  if (!(us > 0) || !(bytes > 0)) return '–';
  return `${(bytes / us / 1e3).toFixed(bytes / us >= 1e4 ? 1 : 2)} GB/s`;
}

/** Distances between marks of a scale that has room for `count` of them. */
export function niceStep(span, count) {
  const raw = span / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(raw));
  const factor = [1, 2, 5, 10].find((f) => f * power >= raw);
  return factor * power;
}
