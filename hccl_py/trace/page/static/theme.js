/** Light and dark: the style sheet has the colours, canvases read them from there. */

const NAMES = [
  ...['background', 'panel', 'line', 'faint', 'text', 'muted', 'accent', 'critical', 'found'],
  ...['cursor', 'copy', 'transfer', 'reduce', 'compute', 'wait', 'wait-line', 'post', 'stuck'],
  ...['on-bar', 'on-wait', 'phase-a', 'phase-b', 'undefined', 'bad'],
];

export class Theme {
  constructor() {
    this.chosen = null;
    this.dark = window.matchMedia('(prefers-color-scheme: dark)');
    this.listeners = [];
    this.dark.addEventListener('change', () => this.apply());
    this.apply();
  }

  get name() {
    return this.chosen ?? (this.dark.matches ? 'dark' : 'light');
  }

  onChange(listener) {
    this.listeners.push(listener);
  }

  toggle() {
    this.chosen = this.name === 'dark' ? 'light' : 'dark';
    this.apply();
  }

  apply() {
    document.documentElement.dataset.theme = this.name;
    const style = getComputedStyle(document.documentElement);
    this.colours = Object.fromEntries(
      NAMES.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]),
    );
    this.hatch = hatched(this.colours['wait'], this.colours['wait-line']);
    this.stuckHatch = hatched(this.colours['stuck'], this.colours['background']);
    this.listeners.forEach((listener) => listener());
  }
}

function hatched(ground, line) {
  const tile = document.createElement('canvas');
  tile.width = tile.height = 8;
  const context = tile.getContext('2d');
  context.fillStyle = ground;
  context.fillRect(0, 0, 8, 8);
  context.strokeStyle = line;
  context.lineWidth = 1;
  context.beginPath();
  for (const at of [-4, 0, 4, 8]) {
    context.moveTo(at - 1, 9);
    context.lineTo(at + 9, -1);
  }
  context.stroke();
  return context.createPattern(tile, 'repeat');
}
