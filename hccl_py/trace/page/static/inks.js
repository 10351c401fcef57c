/** Colours of chunks and of whose data something is; fonts on canvases. */

export const INKS = [
  ...['#0072b2', '#e69f00', '#009e73', '#cc79a7', '#56b4e9', '#d55e00', '#b8a800', '#7b5ea7'],
  ...['#6fb1da', '#f3ce7f', '#6cc9ae', '#e6bcd3', '#a9daf5', '#eba277', '#dbd066', '#b9a8d2'],
];
const DARK_INKS = new Set([0, 2, 5, 7]);
export const ADDS = '#7b5ea7';
export const MOVES = '#0b7a55';

export const inkOf = (column) => INKS[column % INKS.length];
export const inkOn = (column) => (DARK_INKS.has(column % INKS.length) ? '#fff' : '#111');
export const inkOfStep = ({ ending }) => (ending.includes('adds') ? ADDS : MOVES);
export const fontOf = (size, weight = 700) => `${weight} ${size}px system-ui, sans-serif`;
