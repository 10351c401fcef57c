/** The page's words in the language that is chosen; texts of files stay as they are. */

import { CHINESE } from './words_zh.js';
import { ENGLISH } from './words_en.js';

let words = (navigator.language || 'en').toLowerCase().startsWith('zh') ? CHINESE : ENGLISH;

export function languageName() {
  return words === CHINESE ? 'zh' : 'en';
}

export function switchLanguage() {
  words = words === CHINESE ? ENGLISH : CHINESE;
}

/** The word for a key, with its {names} filled in; `one|many` by its count. */
export function t(key, values = {}) {
  const [one, many = one] = words[key].split('|');
  return (String(values.count) === '1' ? one : many).replace(/\{(\w+)\}/g, (_, name) => String(values[name]));
}
