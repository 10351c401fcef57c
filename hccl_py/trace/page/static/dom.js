/** Elements without HTML: texts become text nodes only, so nothing of a file is ever parsed. */

/**
 * @param {string} tag
 * @param {object} [attributes] `class`, `aria-...`, ...; functions under `onclick` and the like
 * @param {...(Node|string|number|null|undefined|false)} children what is not there is left out
 */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(name, value === true ? '' : String(value));
    }
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) {
      element.append(child instanceof Node ? child : String(child));
    }
  }
  return element;
}

export function button(text, onclick, attributes = {}) {
  return h('button', { type: 'button', onclick, ...attributes }, text);
}

/** Pairs of a name and a value below each other. */
export function facts(rows) {
  return h(
    'dl',
    {},
    rows.map(([name, value]) => [h('dt', {}, name), h('dd', {}, value)]),
  );
}

/** A square of a colour. */
export function swatch(colour) {
  const element = h('span', { class: 'swatch' });
  element.style.background = colour;
  return element;
}

export function byId(id) {
  return document.getElementById(id);
}

/** Name an element by a word, for the pointer and for screen readers. */
export function named(element, word) {
  element.title = word;
  element.setAttribute('aria-label', word);
}

/** Make a canvas as large as its element, in device pixels; returns its context in CSS pixels. */
export function fitted(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  const wide = Math.max(1, Math.round(width * ratio));
  const high = Math.max(1, Math.round(height * ratio));
  if (canvas.width !== wide || canvas.height !== high) {
    canvas.width = wide;
    canvas.height = high;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext('2d');
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}

/** The place of a pointer on an element. */
export function placeOn(element, event) {
  const box = element.getBoundingClientRect();
  return { x: event.clientX - box.left, y: event.clientY - box.top };
}

/** Call `moved(event)` while the pointer is held down on an element, then `ended`. */
export function whileDragged(event, moved, ended = () => {}) {
  const target = event.currentTarget;
  target.setPointerCapture(event.pointerId);
  const stop = () => {
    target.removeEventListener('pointermove', moved);
    target.removeEventListener('pointerup', stop);
    target.removeEventListener('pointercancel', stop);
    ended();
  };
  target.addEventListener('pointermove', moved);
  target.addEventListener('pointerup', stop);
  target.addEventListener('pointercancel', stop);
}

/** Show lines beside the pointer; without lines, hide them. */
export function tooltip(event, lines) {
  const box = byId('tooltip');
  box.hidden = !lines;
  if (!lines) return;
  box.replaceChildren(...lines.filter(Boolean).map((line) => h('div', {}, line.slice(0, 160))));
  const { offsetWidth, offsetHeight } = box;
  const left = Math.min(event.clientX + 14, innerWidth - offsetWidth - 8);
  const below = event.clientY + 18;
  const isLow = below + offsetHeight > innerHeight - 8;
  box.style.left = `${Math.max(4, left)}px`;
  box.style.top = `${isLow ? event.clientY - offsetHeight - 10 : below}px`;
}
