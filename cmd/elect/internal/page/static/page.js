// The page of elections. It is told everything by server-sent events, and asks for nothing else.
// Whatever comes from a store is put into the page as text, never as markup.

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const WINDOWS = [ // with the steps of the axis, and what they count in
  { ms: 20_000, text: '20 s', steps: 4, unit: [1000, 's'] },
  { ms: MINUTE, text: '1 min', steps: 6, unit: [1000, 's'] },
  { ms: 10 * MINUTE, text: '10 min', steps: 5, unit: [MINUTE, 'min'] },
  { ms: HOUR, text: '1 h', steps: 6, unit: [MINUTE, 'min'] },
  { ms: 6 * HOUR, text: '6 h', steps: 6, unit: [HOUR, 'h'] },
];
const FLAPPING = 6; // terms that begin within 10 minutes
const MOST = 200; // elections that are drawn before somebody asks for the rest
const MOST_TERMS = 12;
const MOST_CANDIDATES = 12; // beside those that a roster tells of
const SILENCE = 25_000; // the server speaks every 10 s
const COLOURS = 7;

const $ = id => document.getElementById(id);

// make returns an element with properties, attributes (in an array of pairs) and children.
function make(tag, { attributes = {}, ...properties } = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// putAfter sees that an element comes next after another, or first, among the children of a
// parent. One that is there already is not touched: if it were, it would lose the focus.
function putAfter(before, element, parent) {
  const next = before ? before.nextSibling : parent.firstChild;
  if (next !== element) parent.insertBefore(element, next);
  return element;
}

// Times. The server counts milliseconds from its start, by a clock that nobody can set.

const clock = { offset: null, began: null, stopped: null };

function setClock(state) {
  clock.offset = performance.now() - state.now;
  clock.began = Date.parse(state.clock) - state.now;
  clock.stopped = null;
}

// now stands still while nothing is heard of the server: what is shown is as old as that.
function now() {
  if (clock.offset === null) return 0;
  return clock.stopped ?? performance.now() - clock.offset;
}

const two = n => String(n).padStart(2, '0');
const wall = at => new Date(clock.began + at);
const time = date => `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
const exact = date => `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${time(date)}.${String(date.getMilliseconds()).padStart(3, '0')}`;

function lasting(ms) {
  const s = Math.max(ms, 0) / 1000;
  if (s < 0.995) return `${Math.round(s * 1000)} ms`;
  if (s < 9.95) return `${s.toFixed(1)} s`;
  if (s < 100) return `${Math.round(s)} s`;
  const min = Math.floor(s / 60);
  if (min < 10) return `${min} min ${Math.floor(s % 60)} s`;
  if (min < 120) return `${min} min`;
  const h = Math.floor(min / 60);
  return h < 48 ? `${h} h ${min % 60} min` : `${Math.floor(h / 24)} d ${h % 24} h`;
}

// Candidates have colours, in the order in which they were first seen. When the colours are used
// up, they come again with a pattern.

const colours = new Map();

function colour(id) {
  if (!colours.has(id)) colours.set(id, colours.size);
  const n = colours.get(id);
  const pattern = Math.floor(n / COLOURS) % 4;
  return `c${n % COLOURS}${pattern ? ` p${pattern}` : ''}`;
}

const swatch = id => make('i', { className: `swatch ${colour(id)}`, attributes: { 'aria-hidden': 'true' } });

// What there is to say of an election.

const last = e => e.spells.at(-1) ?? { state: 'unknown', from: now() };
const isTerm = s => s.state === 'leader';
const ends = s => s.to ?? now();
const short = (text, n = 80) => text.length > n ? `${text.slice(0, n)}…` : text;

function terms(e, since) {
  return e.spells.filter(s => isTerm(s) && !s.found && s.from >= since).length;
}

const recent = e => terms(e, now() - 10 * MINUTE);

// goesOn reports whether a term is the one before, which went on while the store could not be seen.
const goesOn = (e, i) => i > 1 && e.spells[i - 1].state === 'unknown' && isTerm(e.spells[i - 2]) && e.spells[i - 2].token === e.spells[i].token;

// gap returns how long nobody led after a spell.
function gap(e, i) {
  const next = e.spells[i + 1];
  return next?.state === 'vacant' ? ends(next) - next.from : 0;
}

function ending(e, i) {
  const s = e.spells[i];
  if (s.end !== 'lost' && s.end !== 'over') return s.how ?? '';
  if (gap(e, i)) return `${s.how}; nobody led for ${lasting(gap(e, i))}`;
  return s.how + (isTerm(e.spells[i + 1]) ? '; the gap was too short to be seen' : '');
}

// tell returns the lines about a spell.
function tell(e, i) {
  const s = e.spells[i];
  const lines = [];
  switch (s.state) {
    case 'leader':
      lines.push(s.to === undefined ? `${s.id} leads` : `${s.id} led`);
      break;
    case 'vacant': lines.push('nobody leads'); break;
    case 'foreign': lines.push('another program’s lock'); break;
    default: lines.push('the store could not be watched');
  }
  const from = `${roughly(s)}from ${time(wall(s.from))}`;
  lines.push(s.to === undefined ? `${from}, for ${lasting(now() - s.from)} so far` : `${from} to ${time(wall(s.to))}, ${lasting(s.to - s.from)}`);
  if (isTerm(s)) lines.push(`token ${s.token}${s.rank ? `, rank ${s.rank}` : ''}${s.ttl ? `, TTL ${lasting(s.ttl)}` : ''}`);
  if (s.value) lines.push(`value ${short(s.value)}`);
  const how = ending(e, i);
  if (how) lines.push(how);
  return lines;
}

// roughly says how exactly the beginning of a spell is known: by the clocks of those who led, or not
// at all if it was found.
const roughly = s => s.told ? 'about ' : s.found ? 'at least ' : '';

// age returns how long a spell has lasted. One that was found is older than it was seen: its
// leader's own clock may tell.
function age(s) {
  if (s.found && s.since) return `about ${lasting(clock.began + now() - Date.parse(s.since))}`;
  return `${roughly(s)}${lasting(now() - s.from)}`;
}

const STATES = { leader: 'led', vacant: 'vacant', foreign: 'other lock', unknown: 'not seen' };

// The frame: which times are shown, and where.

const frame = { ...WINDOWS[2], chosen: false, width: 600, origin: 0 };
const scale = () => frame.width / frame.ms;
const place = at => (at - frame.origin) * scale();

function setView() {
  document.documentElement.style.setProperty('--view', String(place(now() - frame.ms)));
}

// A Lane shows spells and marks along the time. Its bars are kept while they mean the same, so
// that the focus stays where it is.
class Lane {
  constructor(small) {
    this.strip = make('div', { className: 'strip' });
    this.root = make('div', { className: small ? 'lane small' : 'lane', attributes: { role: 'group' } });
    this.root.append(this.strip);
    this.parts = new Map();
    this.root.addEventListener('keydown', event => this.move(event));
  }

  // show draws what is given as { key, from, to, look, text, lines }, in the order of times.
  show(label, things) {
    this.root.setAttribute('aria-label', label);
    const begin = now() - frame.ms;
    const seen = new Set();
    let before = null;
    for (const [i, thing] of things.entries()) {
      if ((thing.to ?? Infinity) < begin) continue;
      seen.add(thing.key);
      const part = this.parts.get(thing.key) ?? this.part(thing);
      part.lines = thing.lines;
      const width = ((thing.to ?? now()) - thing.from) * scale();
      part.className = `${thing.look}${width < 32 ? ' narrow' : ''}`;
      part.style.zIndex = thing.look.includes(' passes') ? 1 + things.length - i : ''; // its tip is above the next
      part.style.setProperty('--left', String(place(thing.from)));
      if (!thing.mark) {
        part.style.setProperty('--width', String(((thing.to ?? now() + frame.ms) - thing.from) * scale()));
      }
      if (part.firstChild.textContent !== thing.text) part.firstChild.textContent = thing.text;
      before = putAfter(before, part, this.strip);
    }
    for (const [key, part] of this.parts) {
      if (seen.has(key)) continue;
      part.remove();
      this.parts.delete(key);
    }
    this.rove();
  }

  part(thing) {
    const part = thing.mark ? make('span', {}, '') : make('div', { attributes: { role: 'img' } }, make('span'));
    part.addEventListener('pointerenter', () => showTip(part));
    part.addEventListener('pointerleave', hideTip);
    part.addEventListener('focus', () => showTip(part));
    part.addEventListener('blur', hideTip);
    this.parts.set(thing.key, part);
    return part;
  }

  bars() { return [...this.strip.querySelectorAll('[role=img]')]; }

  // rove lets the Tab key reach one bar: the newest, or the one that has the focus.
  rove() {
    const bars = this.bars();
    const current = bars.includes(document.activeElement) ? document.activeElement : bars.at(-1);
    for (const bar of bars) {
      bar.tabIndex = bar === current ? 0 : -1;
      bar.setAttribute('aria-label', bar.lines().join(', '));
    }
  }

  move(event) {
    const bars = this.bars();
    const at = bars.indexOf(document.activeElement);
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: bars.length - 1 }[event.key];
    if (at < 0 || to === undefined || !bars[to]) return;
    event.preventDefault();
    bars[to].focus({ preventScroll: true });
    this.rove();
  }
}

// look returns how a spell is drawn.
function look(s) {
  if (!isTerm(s)) return `bar ${s.state}`;
  return `bar ${colour(s.id)}${{ 'handed over': ' passes', lost: ' lost' }[s.end] ?? ''}${s.found ? ' found' : ''}`;
}

const caption = s => ({ leader: s.id, vacant: 'nobody', foreign: 'other lock' })[s.state] ?? 'not seen';

const spellThings = (e, only) => e.spells.flatMap((s, i) => only(s) ? [{
  key: `${s.state} ${s.from} ${s.token ?? ''}`, from: s.from, to: s.to, look: look(s) + (e.spells[i - 1]?.end === 'handed over' ? ' heired' : ''), text: caption(s), lines: () => tell(e, i),
}] : []);

const heirThings = (e, id) => e.heirs.filter(h => h.id === id).map(h => ({
  key: `heir ${h.from}`, from: h.from, to: h.to, look: `bar heir ${colour(id)}`, text: '',
  lines: () => [`${id} is the heir`, `from ${time(wall(h.from))}, ${lasting(ends(h) - h.from)}`],
}));

const markThings = (e, only) => (e.marks ?? []).filter(only).map((m, i) => ({
  key: `mark ${i} ${m.at} ${m.who} ${m.sign}`, mark: true, from: m.at, to: m.at, look: `mark ${m.sign === 'K' ? 'K' : ''}`, text: m.sign,
  lines: () => [`${m.who} ${m.what}`, time(wall(m.at))],
}));

// sleepThings are the times between a candidate's S and its C.
const sleepThings = (e, id) => (e.marks ?? []).filter(m => m.who === id && m.sign === 'S').map(m => {
  const woken = e.marks.find(n => n.who === id && n.sign === 'C' && n.at > m.at);
  return {
    key: `asleep ${m.at}`, from: m.at, to: woken?.at, look: 'bar asleep', text: 'asleep',
    lines: () => [`${id} is asleep`, `from ${time(wall(m.at))}, ${lasting((woken?.at ?? now()) - m.at)}`],
  };
});

// A View is one election in the list.
class View {
  constructor(name) {
    this.name = name;
    const id = `more-${View.count++}`;
    this.button = make('button', { type: 'button', attributes: { 'aria-expanded': 'false', 'aria-controls': id } }, name);
    this.button.addEventListener('click', () => this.toggle());
    this.badges = make('span', { className: 'badges' });
    this.facts = make('p', { className: 'facts' });
    this.lane = new Lane(false);
    this.more = make('div', { className: 'more', id, hidden: true });
    this.root = make('article', { className: 'election', attributes: { 'aria-label': `Election ${name}` } },
      make('div', { className: 'row' },
        make('div', {}, make('div', { className: 'title' }, make('h2', {}, this.button), this.badges), this.facts),
        this.lane.root),
      this.more);
    this.rows = new Map();
    this.table = make('tbody');
  }

  get open() { return !this.more.hidden; }

  toggle(open = this.more.hidden) {
    this.more.hidden = !open;
    this.root.classList.toggle('open', open);
    this.button.setAttribute('aria-expanded', String(open));
    this.draw();
  }

  update(data) {
    this.data = data;
    this.draw();
  }

  draw() {
    const e = this.data;
    const s = last(e);
    this.root.classList.toggle('alarm', s.state === 'vacant');
    this.lane.root.classList.toggle('marked', Boolean(e.marks?.length));
    this.lane.show(`Timeline of ${e.name}`, [...spellThings(e, () => true), ...markThings(e, () => true)]);
    this.tick();
    if (this.open) this.drawMore();
  }

  // tick writes what changes with the time.
  tick() {
    const e = this.data;
    const s = last(e);
    const badges = [];
    if (s.state !== 'leader') badges.push(make('span', { className: `badge ${s.state}` }, STATES[s.state]));
    if (recent(e) >= FLAPPING) badges.push(make('span', { className: 'badge warn' }, `flapping: ${recent(e)} terms in 10 min`));
    replace(this.badges, badges);
    replace(this.facts, this.says(e, s));
    this.facts.title = `since ${exact(wall(s.from))} by the clock of this page’s host${s.since ? `; ${s.id} says ${exact(new Date(s.since))}` : ''}`;
    if (!this.open) return;
    for (const cell of this.more.querySelectorAll('[data-at]')) cell.textContent = `${lasting(now() - Number(cell.dataset.at))} ago`;
    for (const row of this.rows.values()) this.tell(row);
  }

  says(e, s) {
    const parts = [];
    switch (s.state) {
      case 'leader':
        parts.push(swatch(s.id), make('b', {}, s.id), ` leads for ${age(s)} · `);
        parts.push(...(e.heir ? ['heir ', swatch(e.heir), make('b', {}, e.heir)] : ['no heir']));
        break;
      case 'vacant': {
        parts.push(make('b', { className: 'bad' }, 'nobody leads'), ` for ${age(s)}`);
        const before = e.spells.slice(0, -1).findLast(isTerm);
        if (before) parts.push(' · before: ', swatch(before.id), before.id);
        if (e.hold && Date.parse(e.hold) > clock.began + now()) parts.push(` · a hold keeps it closed until about ${time(new Date(e.hold))}`);
        break;
      }
      case 'foreign': parts.push(make('b', {}, 'another program’s lock'), ` for ${age(s)}${s.value ? ` · ${short(s.value, 60)}` : ''}`); break;
      default: if (!e.trouble) parts.push('waiting for the store');
    }
    if (e.trouble) parts.push(make('span', { className: 'bad' }, `${parts.length ? ' · ' : ''}cannot be watched: ${short(e.trouble, 200)}`));
    return parts;
  }

  drawMore() {
    const e = this.data;
    if (!this.more.firstChild) {
      this.heading = make('h3');
      this.unlisted = make('p', { className: 'facts' });
      this.grid = make('div', { className: 'more-rows', attributes: { role: 'list', 'aria-label': `Candidates of ${e.name}` } });
      const head = ['Candidate', 'Token', 'Began', 'Lasted', 'How it ended'].map(text => make('th', { scope: 'col', className: text.toLowerCase() }, text));
      this.terms = make('div', { className: 'scroll' },
        make('table', { attributes: { 'aria-label': `Terms of ${e.name}, newest first` } }, make('thead', {}, make('tr', {}, ...head)), this.table));
      this.more.append(this.heading, this.unlisted, this.grid, make('h3', {}, 'Terms, newest first'), this.terms);
    }
    const listed = e.candidates?.length ?? 0;
    replace(this.heading, [e.candidateCount > listed ? `Candidates: ${listed} of ${e.candidateCount}` : 'Candidates']);
    this.unlisted.hidden = !e.unlisted;
    replace(this.unlisted, e.unlisted ? [`The roster cannot be read: ${short(e.unlisted, 200)}`] : []);
    const keys = new Set();
    const met = new Map();
    let before = null;
    for (const c of this.cast(e)) {
      const n = met.get(c.id) ?? 0; // so many with that ID come before it
      met.set(c.id, n + 1);
      keys.add(`${n} ${c.id}`);
      before = putAfter(before, this.row(e, c, n), this.grid);
    }
    for (const [key, row] of this.rows) {
      if (keys.has(key)) continue;
      row.root.remove();
      this.rows.delete(key);
    }
    this.fill(e);
  }

  // cast returns the candidates that have a row, by ID: those that are known, and those that led last.
  cast(e) {
    const begin = now() - frame.ms;
    const known = e.candidates ?? [];
    const ids = new Set(known.map(c => c.id));
    const met = [...e.spells, ...e.heirs].filter(s => s.id && !ids.has(s.id) && ends(s) >= begin).sort((a, b) => ends(b) - ends(a)).map(s => s.id);
    const all = [...known, ...[...new Set(met)].slice(0, MOST_CANDIDATES).map(id => ({ id }))];
    const place = c => ['leads', 'heir'].indexOf(c.state) >>> 0; // of those with one ID
    return all.sort((a, b) => Boolean(a.foreign) - Boolean(b.foreign) || (a.id < b.id ? -1 : a.id > b.id ? 1 : place(a) - place(b)));
  }

  // row returns that of a candidate. Times are known by ID: of several with one ID, the first has them.
  row(e, c, n) {
    const { id } = c;
    const key = `${n} ${id}`;
    let row = this.rows.get(key);
    if (!row) {
      const is = make('span');
      const about = make('p', { className: 'facts' });
      const name = c.foreign ? ['a foreign record'] : [swatch(id), id];
      row = { is, about, root: make('div', { className: 'row', attributes: { role: 'listitem' } }, make('div', {}, make('div', { className: 'who' }, make('b', {}, ...name), is), about)) };
      if (!c.foreign && n === 0) {
        row.lane = new Lane(true);
        row.root.append(row.lane.root);
      }
      this.rows.set(key, row);
    }
    row.told = c;
    const word = c.state ?? (last(e).id === id ? 'leads' : e.heir === id ? 'heir' : '');
    row.is.textContent = c.foreign ? '' : `${word}${c.rank ? ` · rank ${c.rank}` : ''}`;
    row.is.className = c.state === 'killed' ? 'killed' : '';
    row.more = n > 0 && !c.foreign;
    this.tell(row);
    row.lane?.show(`${id} in ${e.name}`, [
      ...heirThings(e, id), ...spellThings(e, t => isTerm(t) && t.id === id), ...sleepThings(e, id), ...markThings(e, m => m.who === id),
    ]);
    return row.root;
  }

  // tell writes what a candidate tells of itself.
  tell(row) {
    const c = row.told;
    const parts = [];
    if (row.more) parts.push('another with this ID');
    if (c.since) parts.push(`came about ${lasting(clock.began + now() - Date.parse(c.since))} ago`);
    if (c.value) parts.push(`value ${short(c.value)}`);
    replace(row.about, [parts.join(' · ')]);
    row.about.hidden = !parts.length;
    row.about.title = c.since ? `since ${exact(new Date(c.since))} by its own clock` : '';
  }

  fill(e) {
    const rows = [];
    for (let i = e.spells.length - 1; i >= 0 && rows.length < MOST_TERMS; i--) {
      const s = e.spells[i];
      if (!isTerm(s) || goesOn(e, i)) continue;
      rows.push(make('tr', {},
        make('td', {}, swatch(s.id), s.id), make('td', { className: 'token' }, s.token),
        make('td', { className: 'time', title: exact(wall(s.from)), attributes: { 'data-at': String(s.from) } }, `${lasting(now() - s.from)} ago`),
        make('td', { className: 'took' }, s.to === undefined ? 'goes on' : `${roughly(s)}${lasting(s.to - s.from)}`),
        make('td', {}, s.to === undefined ? '' : ending(e, i))));
    }
    this.terms.hidden = rows.length === 0;
    this.table.replaceChildren(...rows);
  }
}
View.count = 0;

// replace puts nodes and texts into an element, unless they are there already.
function replace(element, parts) {
  const next = make('div', {}, ...parts);
  if (next.isEqualNode(make('div', {}, ...[...element.childNodes].map(n => n.cloneNode(true))))) return;
  element.replaceChildren(...parts);
}

// The tip says what the pointer or the focus is on.

let tipped = null;

function showTip(part) {
  tipped = part;
  const tip = $('tip');
  tip.textContent = part.lines().join('\n');
  tip.hidden = false;
  const at = part.getBoundingClientRect();
  const lane = part.closest('.lane').getBoundingClientRect();
  const left = Math.max(at.left, lane.left);
  const right = Math.min(at.right, lane.right);
  const x = (left + right) / 2 - tip.offsetWidth / 2;
  tip.style.left = `${Math.min(Math.max(x, 8), innerWidth - tip.offsetWidth - 8)}px`;
  const below = lane.bottom + 6;
  tip.style.top = `${below + tip.offsetHeight < innerHeight ? below : lane.top - tip.offsetHeight - 6}px`;
}

function hideTip() {
  tipped = null;
  $('tip').hidden = true;
}

// The list.

const views = new Map();
const known = new Map();
let filter = 'all';
let everything = false;

const FILTERS = [
  ['all', 'elections', () => true, ''],
  ['vacant', 'without a leader', e => last(e).state === 'vacant', 'alarm'],
  ['flapping', 'flapping', e => recent(e) >= FLAPPING, 'warn'],
  ['foreign', 'with another lock', e => last(e).state === 'foreign', ''],
  ['unknown', 'not seen', e => last(e).state === 'unknown' || e.trouble, 'warn'],
];

function drawTiles() {
  document.querySelector('.tools').classList.toggle('single', known.size < 2 && filter === 'all' && !$('find').value);
  const tiles = FILTERS.map(([name, text, holds, look]) => ({ name, text, look, n: [...known.values()].filter(holds).length }));
  const shown = tiles.filter(t => t.n || t.name === 'all' || t.name === filter);
  const text = t => `${t.n} ${t.name === 'all' && t.n === 1 ? 'election' : t.text}`;
  const buttons = [...$('tiles').children];
  if (buttons.map(b => b.dataset.filter).join() !== shown.map(t => t.name).join()) {
    const focus = document.activeElement?.dataset?.filter;
    $('tiles').replaceChildren(...shown.map(t => {
      const button = make('button', { type: 'button', className: t.look, attributes: { 'data-filter': t.name } }, make('b'), make('span'));
      button.addEventListener('click', () => { filter = t.name; drawList(); });
      return button;
    }));
    $('tiles').querySelector(`[data-filter="${focus}"]`)?.focus();
  }
  for (const [i, t] of shown.entries()) {
    const button = $('tiles').children[i];
    button.setAttribute('aria-pressed', String(filter === t.name));
    button.firstChild.textContent = t.n;
    button.lastChild.textContent = text(t).replace(/^\d+/, '');
  }
}

// drawList puts the elections that are asked for into the list, by name.
function drawList() {
  drawTiles();
  const wanted = $('find').value.trim().toLowerCase();
  const holds = FILTERS.find(f => f[0] === filter)[2];
  const names = [...known.values()]
    .filter(e => holds(e) && (!wanted || e.name.toLowerCase().includes(wanted) || (last(e).id ?? '').toLowerCase().includes(wanted)))
    .map(e => e.name).sort();
  const shown = everything ? names : names.slice(0, MOST);
  let before = null;
  for (const name of shown) {
    let view = views.get(name);
    if (!view) {
      view = new View(name);
      views.set(name, view);
      view.update(known.get(name));
      if (known.size === 1) view.toggle(true);
    }
    before = putAfter(before, view.root, $('list'));
  }
  for (const [name, view] of views) {
    if (shown.includes(name)) continue;
    view.root.remove();
    views.delete(name);
  }
  const left = names.length - shown.length;
  const say = known.size === 0 ? 'No elections yet.' : names.length === 0 ? 'None of the elections is like that.' : '';
  $('empty').hidden = !say && !left;
  replace($('empty'), left ? [allButton(left)] : [say]);
}

function allButton(left) {
  const button = make('button', { type: 'button' }, `Show ${left} more`);
  button.addEventListener('click', () => { everything = true; drawList(); });
  return button;
}

// drawAxis writes the times above the lanes. The lanes have a line at each step.
function drawAxis() {
  const [unit, name] = frame.unit;
  document.documentElement.style.setProperty('--step', `${100 / frame.steps}%`);
  const sparse = frame.width < 480 ? 2 : 1;
  const end = $('link').dataset.link === 'over' ? 'the end' : 'now';
  const ticks = [];
  for (let i = frame.steps; i >= 0; i -= sparse) {
    const tick = make('span', {}, i ? `−${frame.ms * i / frame.steps / unit} ${name}` : end);
    tick.style.left = `${100 - i * 100 / frame.steps}%`;
    ticks.push(tick);
  }
  if (ticks.at(-1).textContent !== end) ticks.push(make('span', {}, end));
  $('axis').replaceChildren(...ticks);
}

// layout places everything anew, from the present time on.
function layout() {
  frame.width = $('axis').clientWidth || frame.width;
  frame.origin = now() - frame.ms;
  setView();
  drawAxis();
  for (const view of views.values()) view.draw();
}

function drawWindows() {
  for (const w of WINDOWS) {
    const radio = make('input', { type: 'radio', name: 'window', value: w.ms, checked: w.ms === frame.ms });
    radio.addEventListener('change', () => {
      Object.assign(frame, w, { chosen: true });
      layout();
    });
    $('window').append(make('label', {}, radio, w.text));
  }
}

function setWindow(ms) {
  Object.assign(frame, WINDOWS.find(w => w.ms >= ms) ?? WINDOWS.at(-1), { chosen: true });
  $('window').querySelector(`[value="${frame.ms}"]`).checked = true;
}

// News for those who hear the page.

const news = new Map();

function gather(before, e) {
  const s = last(e);
  if (!before || (last(before).state === s.state && last(before).token === s.token)) return;
  news.set(e.name, { leader: `${s.id} leads ${e.name}`, vacant: `nobody leads ${e.name}`, foreign: `another program has ${e.name}` }[s.state] ?? `${e.name} is not seen`);
}

function announce() {
  if (!news.size) return;
  $('news').textContent = news.size > 3 ? `${news.size} elections have changed` : [...news.values()].join('; ');
  news.clear();
}

// The connection.

let source = null;
let heard = 0;

function receive(event) {
  const state = JSON.parse(event.data);
  heard = performance.now();
  const first = clock.offset === null;
  const turned = clock.stopped !== null || state.over;
  setClock(state);
  if (state.over) clock.stopped = state.now;
  setLink(state.over ? 'over' : 'live', state.over ? 'over' : 'live');
  $('store').textContent = state.store;
  if (first && !frame.chosen) setWindow(state.window);
  const names = new Set(state.elections.map(e => e.name));
  if (state.all) for (const name of known.keys()) if (!names.has(name)) known.delete(name);
  for (const e of state.elections) {
    if (!first) gather(known.get(e.name), e);
    known.set(e.name, e);
  }
  const s = state.search;
  const notices = state.over ? [state.over] : [];
  if (s.trouble) notices.push(`The elections cannot be listed: ${s.trouble}`);
  if (s.left) notices.push('There are more elections than are followed. Name those that matter, or give a prefix.');
  $('notice').hidden = !notices.length;
  $('notice').className = `notice ${state.over ? (state.well ? 'well' : 'badly') : ''}`;
  $('notice').textContent = notices.join(' ');
  $('signs').hidden = ![...known.values()].some(e => e.marks?.length);
  if (first || turned) layout();
  for (const e of state.elections) views.get(e.name)?.update(e);
  drawList();
  drawTitle();
}

function drawTitle() {
  const vacant = [...known.values()].filter(e => last(e).state === 'vacant');
  if (known.size === 1) {
    const [e] = known.values();
    document.title = last(e).state === 'leader' ? `${short(last(e).id, 40)} leads ${short(e.name, 40)}` : `${STATES[last(e).state]}: ${short(e.name, 40)}`;
  } else {
    document.title = vacant.length ? `${vacant.length} without a leader – Elections` : 'Elections';
  }
}

function setLink(link, text) {
  if ($('link').dataset.link !== link) $('link').dataset.link = link;
  if ($('link').textContent !== text) $('link').textContent = text;
}

function lose() {
  if ($('link').dataset.link === 'over') return;
  if (clock.offset !== null) clock.stopped ??= now();
  setLink('broken', clock.offset === null ? 'no connection' : `no connection since ${time(wall(clock.stopped))}`);
}

function connect() {
  source?.close();
  heard = performance.now();
  source = new EventSource('api/events');
  source.onmessage = receive;
  source.onerror = () => {
    lose();
    if (source.readyState === EventSource.CLOSED) setTimeout(connect, 3000);
  };
}

// What goes on by itself.

const still = matchMedia('(prefers-reduced-motion: reduce)');
let moved = 0;

function move() {
  const step = still.matches ? 1000 : Math.max(16, 0.25 / scale());
  if (performance.now() - moved >= step && clock.offset !== null) {
    moved = performance.now();
    setView();
  }
  requestAnimationFrame(move);
}

setInterval(() => {
  if (performance.now() - heard > SILENCE) {
    lose();
    connect();
  }
  if (clock.offset === null || clock.stopped !== null) return;
  for (const view of views.values()) view.tick();
  drawTiles();
  if (tipped) $('tip').textContent = tipped.lines().join('\n');
}, 1000);
setInterval(announce, 3000);
setInterval(layout, 20_000);

document.addEventListener('keydown', event => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = event.target.closest?.('input');
  if (event.key === 'Escape') {
    hideTip();
    if (typing) typing.blur();
    return;
  }
  if (typing) return;
  if (event.key === '/') {
    event.preventDefault();
    $('find').focus();
  }
  if (event.key === 'j' || event.key === 'k') {
    const buttons = [...document.querySelectorAll('.title button')];
    const at = buttons.indexOf(document.activeElement?.closest('.election')?.querySelector('.title button'));
    buttons[event.key === 'j' ? Math.min(at + 1, buttons.length - 1) : Math.max(at - 1, 0)]?.focus();
  }
});
$('find').addEventListener('input', drawList);
new ResizeObserver(() => { if ($('axis').clientWidth !== frame.width) layout(); }).observe($('axis'));

drawWindows();
drawAxis();
connect();
requestAnimationFrame(move);
