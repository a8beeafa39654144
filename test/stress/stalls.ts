// Makes the event loop of a test's process slow for two thirds of the time: each of its ticks takes 25 ms. A request to a server in the
// same process takes several ticks, so a test that sleeps for 20 ms in place of waiting for its arrival was red in 3 of 8 runs.

const tickMs = 25;
const slowMs = 600;
const freeMs = 300;
const started = Symbol.for('intake.stalls');
// The real ones, whatever a test's turned clock puts in their place.
const { setTimeout, setImmediate } = globalThis;
const now = performance.now.bind(performance);
const marks = process as unknown as Record<symbol, boolean>;

// One process serves many files.
if (!marks[started]) {
  marks[started] = true;
  let isSlow = false;
  const stall = () => {
    const until = now() + tickMs;
    while (now() < until);
    if (isSlow) setImmediate(stall).unref();
  };
  const change = () => {
    isSlow = !isSlow;
    setTimeout(change, isSlow ? slowMs : freeMs).unref();
    if (isSlow) stall();
  };
  change();
}
