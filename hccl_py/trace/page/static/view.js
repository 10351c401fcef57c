/** The stretch of time that is on the screen, in microseconds of both schedules' common axis. */

const LEAST = 1e-3; // a nanosecond: nothing is shorter in any model

export class View {
  constructor(total) {
    this.total = Math.max(total, LEAST);
    this.least = -this.total * 0.01;
    this.most = this.total * 1.01;
    this.fit();
  }

  get span() {
    return this.to - this.from;
  }

  fit() {
    this.set(this.least, this.most);
  }

  /** Show from .. to, as far as there is anything to see. */
  set(from, to) {
    const whole = this.most - this.least;
    const span = Math.min(whole, Math.max(to - from, LEAST));
    const middle = (from + to) / 2;
    this.from = Math.min(Math.max(middle - span / 2, this.least), this.most - span);
    this.to = this.from + span;
  }

  /** Let the schedules' common axis reach from `least` to `most`. */
  widen(least, most) {
    this.least = least - this.total * 0.01;
    this.most = most + this.total * 0.01;
    this.set(this.from, this.to);
  }

  zoom(factor, at = (this.from + this.to) / 2) {
    const span = Math.min(this.most - this.least, Math.max(this.span * factor, LEAST));
    const share = (at - this.from) / this.span;
    this.set(at - span * share, at - span * share + span);
  }

  pan(by) {
    const span = this.span;
    const from = Math.min(Math.max(this.from + by, this.least), this.most - span);
    this.from = from;
    this.to = from + span;
  }

  /** Bring from .. to into sight, and as little else as needed of a change. */
  reveal(from, to) {
    if (from >= this.from && to <= this.to) return;
    const span = Math.max(this.span, (to - from) * 1.5);
    this.set((from + to - span) / 2, (from + to + span) / 2);
  }
}
