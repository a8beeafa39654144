// A proxy in front of Postgres that lets statements through one at a time. Every client of a schedule connects through it, under its own
// application_name, so the product's pool, transactions and pipelined statements run unchanged. The proxy holds a statement until the
// schedule releases it. The proxy can also rewrite statements, to remove a guard or to move the time.
import { createServer, connect as dial, type Server, type Socket } from 'node:net';
import { createSplitter, type Message, readSql, readStartup, toQuery, withCode, withSql } from './wire.ts';

/** A statement, or another step of a client such as a put of an object, that waits to be released. */
export interface Step {
  readonly text: string;
  /** The SQL that the proxy sends; equal to `text` unless `rewrite` changed it. */
  sent: string;
  /** Null when the step is not a statement. */
  readonly connection: Connection | null;
  /** True when the statement is its own transaction. */
  isAlone: boolean;
  /** Set when the server has answered. */
  isAnswered: boolean;
  readonly release: () => void;
}

/** A client's connection, as the proxy sees it. */
export interface Connection {
  readonly pid: number;
  /** I: no transaction is open. T: a transaction is open. E: a transaction has failed. */
  readonly status: string;
}

/** The steps of a client, as the proxy sees them. */
export interface Traffic {
  /** Steps in order of arrival. */
  readonly waiting: Step[];
  /** The step that was released and has no answer yet. */
  pending: Step | null;
  /** The proxy refuses connections of a dead client. */
  isDead: boolean;
  /** Incremented when a dead client starts again. The proxy refuses connections of an earlier life. */
  life: number;
  /** Called when a step arrives, is answered, or is dropped with its connection. */
  onChange: () => void;
}

export interface Gate extends AsyncDisposable {
  /** The URL under which this client reaches the database through the proxy. */
  toUrl(name: string): string;
  traffic(name: string): Traffic;
  /** Connections of a client. */
  connections(name: string): Connection[];
  /** Terminates the server sessions of a client and waits until its connections are closed. */
  cut(name: string): Promise<void>;
  /** Changes SQLSTATE 57014 (cancelled) to 40P01 (deadlock) in the session's next error: the explorer ends deadlocks by cancelling. */
  nameDeadlock(pid: number): void;
  /** Changes every statement before the proxy sends it. `before` is the previous statement on the same connection. */
  rewrite: (sql: string, before: string) => string;
  /** This client gets conflicts (a deadlock, a serialization failure, a duplicate key) as an internal error, so it does not retry. */
  hidesConflictsOf: string | null;
  /** How far the database's time is moved forward, in milliseconds. */
  clockMs: number;
  /** A write outside a transaction takes two steps: one executes it, the next commits it. */
  commitsApart: boolean;
}

/** Opens the proxy in front of the database at this URL. `terminate` ends a server session. */
export async function openGate(url: string, terminate: (pid: number) => Promise<void>): Promise<Gate> {
  const target = new URL(url);
  const clients = new Map<string, Traffic>();
  const links = new Set<Link>();
  const sockets = new Set<Socket>();
  const deadlocked = new Set<number>();

  const traffic = (name: string): Traffic => {
    const known = clients.get(name);
    if (known) return known;
    const made: Traffic = { waiting: [], pending: null, isDead: false, life: 1, onChange: () => {} };
    clients.set(name, made);
    return made;
  };

  const gate: Gate = {
    toUrl(name) {
      const own = new URL(url);
      own.hostname = '127.0.0.1';
      own.port = String((server.address() as { port: number }).port);
      own.searchParams.set('application_name', `${name} ${traffic(name).life}`);
      return own.href;
    },
    traffic,
    connections: (name) => [...links].filter((link) => link.name === name),
    async cut(name) {
      const own = [...links].filter((link) => link.name === name);
      await Promise.all(
        own.map(async (link) => {
          // Wait until the server closes the socket: by then it has rolled back the transaction and released its locks.
          link.isCut = true;
          // Without a pid the server has not authenticated the connection yet, so there is no session to terminate.
          if (link.pid === 0) return link.destroy();
          await terminate(link.pid);
          await link.closed;
        }),
      );
    },
    nameDeadlock: (pid) => void deadlocked.add(pid),
    rewrite: (sql) => sql,
    hidesConflictsOf: null,
    clockMs: 0,
    commitsApart: false,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };

  function accept(front: Socket): void {
    const back = dial(Number(target.port || 5432), target.hostname);
    for (const socket of [front, back]) {
      sockets.add(socket);
      socket.setNoDelay(true);
      socket.on('error', () => {});
      socket.on('close', () => sockets.delete(socket));
    }
    const link = new Link(front, back, gate, deadlocked);
    back.on('close', () => {
      links.delete(link);
      link.drop();
      front.destroy();
    });
    front.on('close', () => !link.isCut && back.destroy());
    const split = createSplitter(true);
    front.on('data', (chunk) => {
      for (const message of split(chunk)) {
        if (message.type === '') {
          const [name = '', life] = readStartup(message).get('application_name')?.split(' ') ?? [];
          link.name = name;
          if (traffic(name).isDead || life !== String(traffic(name).life)) {
            front.destroy();
            return;
          }
          links.add(link);
        }
        link.take(message);
      }
    });
  }

  const server: Server = createServer(accept);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return gate;
}

/** How long a client may hold a transaction and do nothing. One that the schedule stops may do so for long. */
const idleLimit = /(?<=SET idle_in_transaction_session_timeout = )\d+/;
const isWrite = /\b(INSERT INTO|UPDATE|DELETE FROM)\b/;

/** The two sockets of one connection. */
class Link implements Connection {
  name = '';
  isCut: boolean = false;
  pid = 0;
  status = '';
  readonly closed: Promise<void>;
  readonly #back: Socket;
  readonly #gate: Gate;
  /** Messages of a statement that is not complete yet. */
  #parts: Message[] = [];
  #running: Step | null = null;
  /** A statement that is committed in a separate step, and the answers that the proxy has not yet passed to the client. */
  #apart: { phase: 'begin' | 'work' | 'end'; readonly work: Buffer; readonly held: Buffer[] } | null = null;
  /** `clockMs` at the start of the open transaction. */
  #begunAt = 0;
  #before = '';

  constructor(front: Socket, back: Socket, gate: Gate, deadlocked: Set<number>) {
    this.#back = back;
    this.#gate = gate;
    this.closed = new Promise((resolve) => back.once('close', () => resolve()));
    const split = createSplitter(false);
    back.on('data', (chunk) => {
      for (const message of split(chunk)) {
        if (message.type === 'K') this.pid = message.bytes.readInt32BE(5);
        this.#pass(message.type === 'E' ? this.#toTold(message, deadlocked.delete(this.pid)) : message, front);
      }
    });
  }

  /** The error as the client receives it. */
  #toTold(error: Message, isDeadlock: boolean): Message {
    const told = isDeadlock ? withCode(error, '57014', '40P01') : error;
    if (this.#gate.hidesConflictsOf !== this.name) return told;
    return ['40P01', '40001', '23505'].reduce((one, code) => withCode(one, code, 'XX000'), told);
  }

  /** Handles a message from the server. */
  #pass(message: Message, front: Socket): void {
    const status = message.type === 'Z' ? String.fromCharCode(message.bytes[5] ?? 0) : null;
    const apart = this.#apart;
    if (apart === null) {
      front.write(message.bytes);
      if (status !== null) this.#answer(status);
      return;
    }
    if (apart.phase === 'work') apart.held.push(message.bytes);
    if (status === null) return;
    if (apart.phase === 'begin') {
      apart.phase = 'work';
      this.#back.write(apart.work);
    } else if (apart.phase === 'work') {
      apart.phase = 'end';
      this.#answer(status);
      this.#offerEnd(status === 'E' ? 'ROLLBACK' : 'COMMIT');
    } else {
      this.#apart = null;
      // The client sent no BEGIN, so it must read that no transaction is open: COMMIT's ReadyForQuery replaces the statement's.
      apart.held.pop();
      for (const bytes of [...apart.held, message.bytes]) front.write(bytes);
      this.#answer(status);
    }
  }

  /** Makes the COMMIT or ROLLBACK of such a statement the next step of its client. */
  #offerEnd(text: string): void {
    const traffic = this.#gate.traffic(this.name);
    const step: Step = {
      ...{ text, sent: text, connection: this, isAlone: false, isAnswered: false },
      release: () => {
        traffic.waiting.splice(traffic.waiting.indexOf(step), 1);
        traffic.pending = step;
        this.#running = step;
        this.#back.write(toQuery(text).bytes);
      },
    };
    traffic.waiting.unshift(step);
    traffic.onChange();
  }

  /** Handles a message from the client. Messages before the end of the login, and Terminate, pass through at once. */
  take(message: Message): void {
    if (this.status === '' || message.type === 'X') {
      this.#back.write(message.bytes);
      return;
    }
    this.#parts.push(message);
    if (this.#isWhole(message.type)) this.#offer();
  }

  /** An extended query ends with Sync, a simple query with its Query message, a COPY with CopyDone for its last table or with CopyFail. */
  #isWhole(type: string): boolean {
    if (type === 'S' || type === 'f') return true;
    const [first] = this.#parts;
    if (first?.type !== 'Q') return false;
    const tables = readSql(first)?.match(/\bCOPY \S+[^;]* FROM STDIN/g)?.length ?? 0;
    return this.#parts.filter((part) => part.type === 'c').length === tables;
  }

  #offer(): void {
    const parts = this.#parts;
    this.#parts = [];
    const text = parts.map(readSql).find((sql) => sql !== null) ?? '';
    // A process that looks what its own statement waits for takes no step.
    if (text.includes('pg_blocking_pids')) return void this.#back.write(Buffer.concat(parts.map(({ bytes }) => bytes)));
    const traffic = this.#gate.traffic(this.name);
    const step: Step = {
      text,
      sent: text,
      connection: this,
      isAlone: false,
      isAnswered: false,
      release: () => {
        traffic.waiting.splice(traffic.waiting.indexOf(step), 1);
        traffic.pending = step;
        this.#running = step;
        step.isAlone = this.status === 'I' && !text.startsWith('BEGIN');
        if (this.status === 'I') this.#begunAt = this.#gate.clockMs;
        step.sent = this.#gate.rewrite(text, this.#before).replace(idleLimit, '0');
        this.#before = text;
        const moved = this.#withTime(step.sent);
        const work = Buffer.concat(
          parts.map((part) => (moved !== text && readSql(part) === text ? withSql(part, moved) : part).bytes),
        );
        if (step.isAlone && this.#gate.commitsApart && isWrite.test(text)) {
          step.isAlone = false;
          this.#apart = { phase: 'begin', work, held: [] };
          this.#back.write(toQuery('BEGIN').bytes);
        } else this.#back.write(work);
      },
    };
    traffic.waiting.push(step);
    traffic.onChange();
  }

  destroy(): void {
    this.#back.destroy();
  }

  /** Removes the steps of this connection after it has closed. */
  drop(): void {
    const traffic = this.#gate.traffic(this.name);
    if (traffic.pending?.connection === this) traffic.pending = null;
    for (const step of traffic.waiting.filter((one) => one.connection === this)) {
      traffic.waiting.splice(traffic.waiting.indexOf(step), 1);
    }
    traffic.onChange();
  }

  /** Moves clock_timestamp() by the current offset, and now() by the offset at the start of the transaction. */
  #withTime(sql: string): string {
    const { clockMs } = this.#gate;
    if (clockMs === 0) return sql;
    return sql
      .replaceAll('clock_timestamp()', `(clock_timestamp() + interval '${clockMs} milliseconds')`)
      .replaceAll(/\bnow\(\)/g, `(now() + interval '${this.#begunAt} milliseconds')`);
  }

  #answer(status: string): void {
    this.status = status;
    const step = this.#running;
    if (step === null) return;
    this.#running = null;
    step.isAnswered = true;
    const traffic = this.#gate.traffic(this.name);
    if (traffic.pending === step) traffic.pending = null;
    traffic.onChange();
  }
}
