// Finds regular expressions that take more than linear time on some text: backtracking, and the search from every position. It builds the
// automaton of an expression (Glushkov: a state for each character set) and looks for two loops that one text moves through and between; the
// search itself is such a loop. Exponential expressions have such loops as well, or two ways through nested repetitions.
// Written here because recheck, which does the same and more, takes a minute of CPU for the expressions of src.

/** What is wrong with an expression; null when its time is linear. */
export function findSlowPattern(source: string, flags: string): string | null {
  try {
    return findAmbiguous(toAutomaton(source, flags));
  } catch (error) {
    if (error instanceof Unsupported) return error.message;
    throw error;
  }
}

class Unsupported extends Error {}

/** Repetitions up to this number count as bounded: they cost a factor, not a power. */
const bounded = 50;

/** One character of every kind that a set may tell apart. */
const alphabet = [
  ...Array.from({ length: 128 }, (_, code) => String.fromCharCode(code)),
  ...'\u00a0\u00ad\u00e9\u0301\u0663\u2028\u4e2d\ufeff\uff9e',
];
const everything = (1n << BigInt(alphabet.length)) - 1n;

interface Automaton {
  /** The characters that lead to each state. State 0 is where the search starts. */
  readonly sets: readonly bigint[];
  readonly next: readonly (readonly number[])[];
  /** Edges that exist twice: two ways through nested repetitions. */
  readonly doubled: ReadonlySet<number>;
  /** States in which the match has succeeded, whatever follows. */
  readonly done: ReadonlySet<number>;
}

interface Part {
  readonly nullable: boolean;
  readonly first: readonly number[];
  readonly last: readonly number[];
}

const empty: Part = { nullable: true, first: [], last: [] };

function toAutomaton(source: string, flags: string): Automaton {
  const sets: bigint[] = [everything];
  const edges: Set<number>[] = [new Set()];
  const doubled = new Set<number>();
  let at = 0;
  let isConditional = false;
  const has = (text: string) => source.startsWith(text, at);
  const take = (text: string) => {
    const isNext = has(text);
    if (isNext) at += text.length;
    return isNext;
  };

  const link = (from: readonly number[], to: readonly number[]) => {
    for (const one of from) {
      for (const other of to) {
        if (edges[one]?.has(other)) doubled.add(other);
        edges[one]?.add(other);
      }
    }
  };
  const toSet = (token: string): Part => {
    const expression = new RegExp(`^(?:${token})$`, flags.replace(/[gyd]/g, ''));
    let set = 0n;
    for (const [nth, char] of alphabet.entries()) if (expression.test(char)) set |= 1n << BigInt(nth);
    const state = sets.push(set) - 1;
    edges.push(new Set());
    return { nullable: false, first: [state], last: [state] };
  };
  const join = (a: Part, b: Part): Part => {
    link(a.last, b.first);
    return {
      nullable: a.nullable && b.nullable,
      first: a.nullable ? [...a.first, ...b.first] : a.first,
      last: b.nullable ? [...a.last, ...b.last] : b.last,
    };
  };

  function readAlternatives(): Part {
    let whole = readSequence();
    while (take('|')) {
      const other = readSequence();
      whole = {
        nullable: whole.nullable || other.nullable,
        first: [...whole.first, ...other.first],
        last: [...whole.last, ...other.last],
      };
    }
    return whole;
  }
  function readSequence(): Part {
    let whole = empty;
    while (at < source.length && !has('|') && !has(')')) whole = join(whole, readRepeated());
    return whole;
  }
  function readRepeated(): Part {
    const from = at;
    const part = readAtom();
    const quantifier = /^(?:[*+?]|\{\d+(?:,\d*)?\})\??/.exec(source.slice(at))?.[0];
    if (quantifier === undefined) return part;
    const to = at;
    at += quantifier.length;
    const [least, most] = toBounds(quantifier);
    if (most > bounded) {
      link(part.last, part.first);
      return { ...part, nullable: part.nullable || least === 0 };
    }
    const optional = { ...part, nullable: part.nullable || least === 0 };
    if (most < 2) return optional;
    // A second copy stands for all others.
    const end = at;
    at = from;
    const copy = readAtom();
    if (at !== to) throw new Error('The copy differs.');
    at = end;
    return join(optional, { ...copy, nullable: copy.nullable || least < 2 });
  }
  function readAtom(): Part {
    if (take('^')) return empty;
    if (take('$') || take('\\b') || take('\\B')) {
      isConditional = true;
      return empty;
    }
    const look = /^\(\?<?[=!]/.exec(source.slice(at))?.[0];
    if (look !== undefined || take('(?:') || take('(')) {
      at += look?.length ?? 0;
      const states = sets.length;
      const inner = readAlternatives();
      if (!take(')')) throw new Error(`A group of ${source} does not end.`);
      if (look === undefined) return inner;
      isConditional = true;
      const isLoop = edges.some((to, nth) => nth >= states && [...to].some((one) => one <= nth && one >= states));
      if (isLoop) throw new Unsupported('repeats within a lookaround');
      return empty;
    }
    const token =
      /^(?:\[(?:[^\]\\]|\\.)*\]|\\(?:[pP]\{[^}]*\}|u[0-9a-fA-F]{4}|u\{[^}]*\}|x[0-9a-fA-F]{2}|.)|.)/su.exec(
        source.slice(at),
      )?.[0] ?? '';
    if (/^\\[1-9k]/.test(token)) throw new Unsupported('has a reference back');
    at += token.length;
    return toSet(token);
  }

  const isAnchored =
    flags.includes('y') || (source.startsWith('^') && !flags.includes('m') && !hasTopAlternative(source));
  const root = readAlternatives();
  if (at < source.length) throw new Error(`${source} is not read to its end.`);
  link([0], root.first);
  if (!isAnchored) edges[0]?.add(0);
  return { sets, next: edges.map((to) => [...to]), doubled, done: new Set(isConditional ? [] : root.last) };
}

/** True where an alternative of the whole expression may begin anywhere, though the first begins at the start. */
function hasTopAlternative(source: string): boolean {
  let flat = source.replace(/\[(?:[^\]\\]|\\.)*\]|\\./g, '');
  for (let before = ''; before !== flat; ) [before, flat] = [flat, flat.replace(/\([^()]*\)/g, '')];
  return flat.split('|').some((alternative) => !alternative.startsWith('^'));
}

function toBounds(quantifier: string): [least: number, most: number] {
  if (quantifier.startsWith('*')) return [0, Number.POSITIVE_INFINITY];
  if (quantifier.startsWith('+')) return [1, Number.POSITIVE_INFINITY];
  if (quantifier.startsWith('?')) return [0, 1];
  const [, least = '', comma, most] = /^\{(\d+)(,?)(\d*)/.exec(quantifier) ?? [];
  return [Number(least), comma === '' ? Number(least) : most === '' ? Number.POSITIVE_INFINITY : Number(most)];
}

/** The tuples of states that one text leads to from a tuple. */
function* walk({ sets, next }: Automaton, tuple: readonly number[]): Generator<number[]> {
  const go = function* (nth: number, chosen: number[], common: bigint): Generator<number[]> {
    if (nth === tuple.length) return void (yield chosen);
    for (const to of next[tuple[nth] ?? 0] ?? []) {
      const both = common & (sets[to] ?? 0n);
      if (both !== 0n) yield* go(nth + 1, [...chosen, to], both);
    }
  };
  yield* go(0, [], everything);
}

function canReach(
  automaton: Automaton,
  from: readonly number[],
  isGoal: (tuple: readonly number[]) => boolean,
  isAllowed = (_: readonly number[]) => true,
): boolean {
  const seen = new Set<string>();
  const open: (readonly number[])[] = [from];
  for (let tuple = open.pop(); tuple !== undefined; tuple = open.pop()) {
    for (const to of walk(automaton, tuple)) {
      if (isGoal(to)) return true;
      if (seen.has(to.join()) || !isAllowed(to)) continue;
      seen.add(to.join());
      open.push(to);
    }
  }
  return false;
}

function findAmbiguous(automaton: Automaton): string | null {
  const loops = automaton.next.flatMap((_, state) =>
    canReach(automaton, [state], ([to]) => to === state) ? [state] : [],
  );
  if (loops.some((state) => automaton.doubled.has(state) && !automaton.done.has(state))) return 'repeats a repetition';
  const reach = new Map(
    loops.map((one) => [
      one,
      new Set(automaton.next.flatMap((_, to) => (canReach(automaton, [one], ([x]) => x === to) ? [to] : []))),
    ]),
  );
  for (const p of loops) {
    for (const q of loops) {
      if (p === q || automaton.done.has(q) || !reach.get(p)?.has(q)) continue;
      const backTo = (state: number | undefined, to: number) =>
        state === to || reach.get(state ?? -1)?.has(to) === true;
      const isAllowed = ([x, , z]: readonly number[]) => backTo(x, p) && backTo(z, q);
      const isGoal = ([x, y, z]: readonly number[]) => x === p && y === q && z === q;
      if (canReach(automaton, [p, p, q], isGoal, isAllowed)) {
        return p === 0 ? 'is repeated by the search from every position' : 'has two repetitions of one text';
      }
    }
  }
  return null;
}
