// Loaded before a worker's own code (`node --import`). Every 1.5 seconds the worker's clock jumps to a random offset of up to
// CHAOS_CLOCK_MS in either direction. Decisions that use the database's clock must not be affected.

const mostMs = Number(process.env.CHAOS_CLOCK_MS ?? 0);
const RealDate = Date;
const realNow = Date.now;
let shiftMs = 0;
setInterval(() => {
  shiftMs = Math.round((Math.random() * 2 - 1) * mostMs);
}, 1_500).unref();
const now = () => realNow() + shiftMs;

globalThis.Date = new Proxy(RealDate, {
  construct: (target, args) => (args.length === 0 ? new target(now()) : Reflect.construct(target, args)),
  get: (target, name) => (name === 'now' ? now : Reflect.get(target, name)),
});
