// Sources of chunks: a server, with news over a socket, or the page itself.

import { Maps, decoded, nearest, upTo } from "../shared/chunks.js";
import { unpackedParts } from "../model/parts.js";
import { rounded, unpacked, unpackedChange } from "../model/picture.js";

const AGAIN = 1000; // ms until a failed request for the index is repeated

const KEPT = 80; // most chunks in the cache
const RECENT = 40; // most chunks kept from the socket, for a race
const AHEAD = 2; // chunks that are loaded after the chunk on the screen
const SEEN = 600; // most maps kept from the socket, for a time without a connection
const TICK = 500; // ms between two looks at the connection
const PING = 3; // ticks between two pings
const [LOST, STALE] = [5, 20]; // ticks without an answer until the connection counts as lost, and until a new one is tried
const LATE = 1000; // ms of delay that are not mentioned

class Source {
  constructor() {
    this.index = null;
    this.chunks = new Map(); // name -> promise of a chunk
    this.recent = []; // chunks from the socket, the newest last
  }

  // The steps of a word that have come over the socket and are later than the index.
  later(word) {
    const last = this.index.steps.at(-1);
    return this.recent.flatMap((chunk) => (chunk.word === word ? chunk.steps.filter((step) => step > last) : []));
  }

  // The index of the chunk that covers a step, among the chunks of a word; -1 if there is none.
  named(word, step) {
    const entries = this.index.chunks[word] ?? [];
    const last = upTo(entries, step, ([first]) => first);
    return last && last[0] <= step && step <= last[1] ? entries.indexOf(last) : -1;
  }

  // Whether the maps of a word at a step are available without a new index.
  holds(word, step) {
    return this.recent.some((chunk) => chunk.word === word && chunk.steps.includes(step)) || this.named(word, step) >= 0;
  }

  chunk(name) {
    if (!this.chunks.has(name)) {
      this.chunks.set(name, this.load(name).then(decoded).catch((error) => {
        this.chunks.delete(name);
        throw error;
      }));
      if (this.chunks.size > KEPT) this.chunks.delete(this.chunks.keys().next().value);
    }
    return this.chunks.get(name);
  }

  // The maps of a word at a recorded step; null if there are none.
  async maps(word, step) {
    const recent = this.recent.findLast((chunk) => chunk.word === word && chunk.steps.includes(step));
    if (recent && this.index.looks[recent.look]) return new Maps(recent, this.index.looks[recent.look], step);
    const place = this.named(word, step);
    if (place < 0) return null;
    const entries = this.index.chunks[word];
    const chunk = await this.chunk(entries[place][3]);
    for (const [, , , name] of entries.slice(place + 1, place + 1 + AHEAD)) this.chunk(name).catch(() => {});
    const look = this.index.looks[chunk.look];
    return chunk.steps.includes(step) && look ? new Maps(chunk, look, step) : null;
  }
}

// The recording inside an exported page.
export class Embedded extends Source {
  // load: returns a promise of the bytes of a name; pictures: the word and the steps of the forward passes that the page
  // contains, and the steps with `parts` of scores: {word, steps, parts}
  constructor(index, load, pictures) {
    super();
    Object.assign(this, { index, load, pictures, passes: {} });
  }

  async begin(changed) {
    changed({});
  }

  // The forward pass of the nearest step among those that the page contains.
  async picture(word, step) {
    const { word: only, steps } = this.pictures;
    if (word !== only) throw new Error(`This page holds the numbers of “${only}” alone; choose that word.`);
    const at = steps[nearest(steps, step)];
    return (this.passes[at] ??= this.load(`pass-${at}`).then((bytes) => unpacked(bytes, rounded)));
  }

  // The parts of the scores of a box of a pass.
  async parts(pass, box) {
    if (!this.pictures.parts.includes(pass.step)) throw new Error("This page has no room for its parts at this step; Look inside in the app shows them.");
    pass.parts ??= this.load(`parts-${pass.step}`).then((bytes) => unpackedParts(bytes, pass));
    return (await pass.parts)[box];
  }

  say() {}

  close() {}
}

// A run on a server. `changed` is called with each message of the socket, {now, maps}; with the index, {index, maps};
// and with a change of the connection, {trouble}.
export class Live extends Source {
  constructor(address, ticket, refused) {
    super();
    Object.assign(this, { address, ticket, refused, wait: 250, unsaid: {}, sends: true });
    Object.assign(this, { seen: new Map(), silent: 0, ticked: 0, late: 0, requests: new AbortController() });
    this.ticks = setInterval(() => this.tick(), TICK);
    this.onHidden = () => this.say({ hidden: document.hidden });
    document.addEventListener("visibilitychange", this.onHidden);
  }

  async begin(changed) {
    this.changed = changed;
    this.connect();
    await this.reload();
  }

  // Load a chunk. It fails when the connection is lost, so that Replay goes on with what is loaded.
  async load(name) {
    return new Uint8Array(await (await this.get(`chunk/${name}`, this.requests.signal)).arrayBuffer());
  }

  async answer(what, signal) {
    const answer = await fetch(`${this.address}/${what}`, { headers: { "x-headlight-ticket": this.ticket }, signal });
    this.hear(); // any answer: after a restart the server refuses the ticket, and can be reached
    return answer;
  }

  // Whether the server has been silent for too long.
  get lost() {
    return this.silent >= LOST;
  }

  // A sentence on a connection that is lost or, while the run trains, slow; empty if it is neither.
  get trouble() {
    if (this.lost) return `No connection for ${Math.round((this.silent * TICK) / 1000)} s. What is loaded can be replayed; training goes on on the server, and buttons wait.`;
    return this.trains && this.late > LATE ? `LIVE is up to ${(this.late / 1000).toFixed(1)} s late: the connection or a computer is busy` : "";
  }

  // Count a tick without an answer, ping the server at times, and try a new connection after a long silence. Ticks are
  // counted instead of seconds, as a sleeping computer makes none.
  tick() {
    if (document.hidden || !this.opened) return;
    this.silent += 1;
    if (this.silent === LOST) {
      this.requests.abort(); // chunks would wait for as long as the system tries; the index may still come from a slow server
      this.requests = new AbortController();
    }
    if (this.lost) this.changed({ trouble: this.trouble });
    this.ticked += 1;
    if (this.ticked % PING === 0) this.say({ ping: Math.round(performance.now()), took: Math.round(this.late) });
    const { socket } = this;
    if (this.silent < STALE || this.silent % 10 || socket.readyState > WebSocket.OPEN) return;
    this.connect(); // the network may have forgotten the old connection
    socket.close();
  }

  // Note a sign of the server.
  hear() {
    const { lost } = this;
    this.silent = 0;
    if (!lost) return;
    this.changed({ trouble: this.trouble });
    this.reload(); // for what was recorded meanwhile
  }

  // The HTTP status of a request with this ticket; 0 without an answer.
  status() {
    return this.answer("index").then(({ status }) => status, () => 0);
  }

  async get(what, signal) {
    const answer = await this.answer(what, signal);
    if (answer.status === 403) this.refused();
    if (!answer.ok) throw new Error(`${what.split("/")[0]}: ${answer.status}`);
    return answer;
  }

  // A forward pass of a word through the model at the nearest snapshot. how: further parameters of the request.
  async picture(word, step, how) {
    return unpacked(await this.asked(`picture/${step}`, { word, ...how }));
  }

  // The parts of the scores of a box of a pass.
  async parts(pass, box) {
    const how = { word: pass.word, site: box, ...pass.arranged };
    return unpackedParts(await this.asked(`parts/${pass.step}`, how), pass)[box];
  }

  // The changes by the training step after the step of a pass.
  async change(pass, how) {
    return unpackedChange(await this.asked(`change/${pass.step}`, { word: pass.word, ...how }), pass);
  }

  // Return the bytes of an answer, or throw an error: with the server's sentence if it refuses the question (422).
  async asked(what, how) {
    const answer = await this.answer(`${what}?${new URLSearchParams(how)}`);
    if (answer.status === 403) this.refused();
    if (answer.status === 422) throw Object.assign(new Error(await answer.text()), { refused: true });
    if (!answer.ok) throw new Error(`${what}: ${answer.status}`);
    return new Uint8Array(await answer.arrayBuffer());
  }

  // Fetch the index; if a fetch is running, fetch once more after it.
  reload() {
    this.again = this.loading !== undefined;
    this.loading ??= this.fetchIndex().then((answered) => {
      this.loading = undefined;
      // The index may be older than the news of the socket, or still be empty.
      if (this.again || (answered && this.known > (this.index?.version ?? 0))) this.reload();
      else if (!this.index && !answered && !this.closed) setTimeout(() => this.reload(), AGAIN);
    });
    return this.loading;
  }

  async fetchIndex() {
    try {
      const index = await (await this.get("index")).json();
      if (!index.version) return true; // nothing has been recorded yet; the socket will report it
      this.index = index;
      this.say({ version: index.version });
      const maps = this.early && this.mapOf(this.early);
      this.early = null;
      this.changed({ index: true, maps });
      return true;
    } catch (error) {
      console.warn(error);
      return false;
    }
  }

  // Whether the maps of a word at a step can be shown without a connection.
  loaded(word, step) {
    return this.seen.has(`${word} ${step}`) || this.chunks.has(this.index.chunks[word]?.[this.named(word, step)]?.[3]);
  }

  async maps(word, step) {
    if (this.lost) {
      const seen = this.seen.get(`${word} ${step}`);
      return seen ? this.mapOf(seen) : this.loaded(word, step) ? super.maps(word, step).catch(() => null) : null;
    }
    if (!this.holds(word, step)) {
      if (this.missed === `${word} ${step} ${this.index.version}`) return null;
      await this.reload(); // it may have been recorded since
      this.missed = `${word} ${step} ${this.index.version}`;
    }
    try {
      return await super.maps(word, step);
    } catch {
      if (this.lost) return this.maps(word, step);
      await this.reload(); // the recording may have been thinned since
      return super.maps(word, step);
    }
  }

  connect() {
    if (this.closed) return;
    const socket = new WebSocket(`${this.address.replace(/^http/, "ws")}/news`, [`headlight.${this.ticket}`]);
    this.socket = socket;
    socket.binaryType = "arraybuffer";
    socket.onopen = () => {
      this.wait = 250;
      this.hear();
      socket.send(JSON.stringify({ ...this.unsaid, hidden: document.hidden }));
      if (this.opened) this.reload(); // for what was recorded meanwhile
      this.opened = true;
    };
    socket.onmessage = ({ data }) => {
      this.hear();
      if (typeof data === "string") {
        this.late = performance.now() - data;
        this.changed({ trouble: this.trouble });
        return;
      }
      // Acknowledge a message once it is drawn or has failed: the server sends few messages ahead.
      this.take(new Uint8Array(data)).finally(() => this.say({ drawn: 1 }));
    };
    socket.onclose = ({ code }) => {
      if (this.closed || this.socket !== socket) return;
      if (code === 1006 || code === 1008) this.refused(); // the ticket may have been refused
      this.wait = Math.min(5000, this.wait * 2);
      setTimeout(() => this.connect(), this.wait);
    };
  }

  // Process two lines of JSON (state of the run, news of the index) and, if there are any, maps of the requested word.
  async take(bytes) {
    const lines = [];
    let at = 0;
    for (let i = 0; i < 2; i += 1) {
      const end = bytes.indexOf(10, at);
      lines.push(JSON.parse(new TextDecoder().decode(bytes.subarray(at, end))));
      at = end + 1;
    }
    const [now, news] = lines;
    this.trains = now.state === "training";
    this.known = now.version;
    if (news && this.index && this.index.version === now.version - 1) this.renew(news, now.version);
    else if (now.version !== (this.index?.version ?? 0) && !this.loading) this.reload();
    let maps = null;
    if (at < bytes.length) {
      const chunk = decoded(bytes.subarray(at));
      this.seen.set(`${chunk.word} ${chunk.steps[0]}`, chunk);
      if (this.seen.size > SEEN) this.seen.delete(this.seen.keys().next().value);
      if (this.unsaid.whole) this.recent = [...this.recent.slice(1 - RECENT), chunk];
      maps = this.mapOf(chunk);
      this.early = maps ? null : chunk; // until the index has its look
      if (!maps && this.index) this.reload();
    }
    await this.changed({ now, maps });
  }

  mapOf(chunk) {
    const look = this.index?.looks[chunk.look];
    return look ? new Maps(chunk, look, chunk.steps[0]) : null;
  }

  renew(news, version) {
    if (news.whole) return this.reload();
    const { index } = this;
    for (const [name, fresh] of Object.entries(news)) {
      if (name === "looks") Object.assign(index.looks, fresh);
      else if (name === "curves" || name === "mass") index[name] = grown(index[name], fresh);
      else index[name] = [...index[name].slice(0, fresh.from), ...fresh.more];
    }
    index.version = version;
  }

  say(what) {
    const { drawn, ping, took, ...lasting } = what;
    Object.assign(this.unsaid, lasting); // sent again on a new socket
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(what));
  }

  close() {
    this.closed = true;
    clearInterval(this.ticks);
    document.removeEventListener("visibilitychange", this.onHidden);
    this.socket?.close();
  }
}

// Return a figure with what has changed since the version before; `fresh` itself if it is a whole figure.
function grown(before, fresh) {
  if (fresh.spec) return fresh;
  const arrays = { ...before.arrays };
  for (const [name, { from, more }] of Object.entries(fresh.arrays)) {
    arrays[name] = [...arrays[name].slice(0, from), ...more];
  }
  return { ...before, arrays, layout: fresh.layout, step: fresh.step };
}
