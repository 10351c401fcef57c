import { decode } from './decode.js';

decode(document.getElementById('scene-0').textContent);
