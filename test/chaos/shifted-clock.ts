// Loaded before a worker's own code (`node --import`): its clock jumps, forth and back, every few seconds, by up to the hours that
// CHAOS_CLOCK_MS allows. What the database's clock decides must not care.

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
