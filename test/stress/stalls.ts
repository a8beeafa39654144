// Slows down the event loop of a test process for two thirds of the time: each tick takes 25 ms. A request to a server in the same process
// takes several ticks, so a test that slept for 20 ms instead of waiting for the request's arrival failed in 3 of 8 runs.

const tickMs = 25;
const slowMs = 600;
const freeMs = 300;
const started = Symbol.for('intake.stalls');
// The real timers, also while a test replaces them with fake ones.
const { setTimeout, setImmediate } = globalThis;
const now = performance.now.bind(performance);
const marks = process as unknown as Record<symbol, boolean>;

// One process runs many files, and each file loads this module.
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
