// Reads editors/tree-sitter/grammar.js without tree-sitter and recognises texts by Earley's algorithm: `node grammar.js GRAMMAR`
// prints, for each path on standard input, the path and whether the text is of the language.
'use strict';
const fs = require('fs');
const path = require('path');

// ---- the grammar as productions: name -> list of right sides; terminals are strings and regular expressions ----

const productions = new Map();
let fresh = 0;

// A rule becomes a symbol: { name } or { terminal, prec }.
function symbolOf(rule) {
  if (typeof rule === 'string' || rule instanceof RegExp) return { terminal: rule, prec: 0 };
  if (rule.kind === 'symbol') return { name: rule.name };
  if (rule.kind === 'token') return { terminal: rule.pattern, prec: rule.prec };
  const name = `#${fresh++}`;
  const sides = [];
  productions.set(name, sides);
  if (rule.kind === 'seq') sides.push(rule.parts.map(symbolOf));
  if (rule.kind === 'choice') for (const part of rule.parts) sides.push([symbolOf(part)]);
  if (rule.kind === 'repeat') sides.push([], [{ name }, symbolOf(rule.part)]);
  if (!sides.length) throw new Error(`unknown rule ${rule.kind}`);
  return { name };
}

function load(file) {
  const globals = {
    seq: (...parts) => ({ kind: 'seq', parts }),
    choice: (...parts) => ({ kind: 'choice', parts }),
    optional: part => ({ kind: 'choice', parts: [part, { kind: 'seq', parts: [] }] }),
    repeat: part => ({ kind: 'repeat', part }),
    field: (name, part) => part,
    alias: (part, name) => part,
    prec: (number, part) => ({ kind: 'prec', prec: number, part }),
    token: part => (part.kind === 'prec' ? { kind: 'token', pattern: part.part, prec: part.prec }
      : { kind: 'token', pattern: part, prec: 0 }),
    grammar: g => g,
  };
  Object.assign(globalThis, globals);
  const g = require(path.resolve(file));
  const named = new Set(Object.keys(g.rules));
  const $ = new Proxy({}, { get: (_, name) => ({ kind: 'symbol', name }) });
  const used = new Set();
  for (const [name, make] of Object.entries(g.rules)) {
    const symbol = symbolOf(make($));
    productions.set(name, [[symbol]]);
  }
  for (const sides of productions.values())
    for (const side of sides)
      for (const s of side)
        if (s.name) {
          if (!productions.has(s.name)) throw new Error(`no rule ${s.name}`);
          used.add(s.name);
        }
  const extras = g.extras($).map(symbolOf).map(s => (s.name ? productions.get(s.name)[0][0] : s));
  for (const extra of ['comment', 'doc_comment']) used.add(extra);
  for (const name of named)
    if (name !== 'source_file' && !used.has(name)) throw new Error(`rule ${name} is not used`);
  return extras;
}

// ---- tokens: the longest match, keywords before names ----

function terminals() {
  const all = new Map();
  for (const sides of productions.values())
    for (const side of sides)
      for (const s of side) if (s.terminal) all.set(String(s.terminal), s);
  return [...all.values()];
}

function matcher(terminal) {
  if (typeof terminal !== 'string') return new RegExp(terminal.source, 'y');
  return new RegExp(terminal.replace(/[^A-Za-z]/g, '\\$&') + (/^\w/.test(terminal) ? '(?![A-Za-z0-9_])' : ''), 'y');
}

function tokensOf(text, table, extras) {
  const tokens = [];
  for (let at = 0; at < text.length;) {
    let best = null;
    let length = 0;
    for (const entry of table) {
      entry.re.lastIndex = at;
      const found = entry.re.exec(text);
      if (!found || !found[0]) continue;
      const rank = entry.prec * 2 + (typeof entry.terminal === 'string');
      if (found[0].length > length || (found[0].length === length && rank > best.rank)) {
        best = { key: entry.key, rank };
        length = found[0].length;
      }
    }
    if (!best) return null;
    if (!extras.has(best.key)) tokens.push(best.key);
    at += length;
  }
  return tokens;
}

// ---- Earley ----

function nullable() {
  const empty = new Set();
  for (let more = true; more;) {
    more = false;
    for (const [name, sides] of productions)
      if (!empty.has(name) && sides.some(side => side.every(s => s.name && empty.has(s.name)))) {
        empty.add(name);
        more = true;
      }
  }
  return empty;
}

function recognises(tokens, start, empty) {
  const sets = [];
  const add = (at, item) => {
    if (!sets[at]) sets[at] = { items: [], keys: new Set(), wants: new Map() };
    const key = `${item.id}:${item.dot}:${item.from}`;
    if (sets[at].keys.has(key)) return;
    sets[at].keys.add(key);
    sets[at].items.push(item);
  };
  const begin = (at, name) => {
    for (const side of productions.get(name)) {
      if (side.id === undefined) side.id = fresh++;
      add(at, { id: side.id, name, side, dot: 0, from: at });
    }
  };
  begin(0, start);
  for (let at = 0; at <= tokens.length; at++) {
    const set = sets[at];
    if (!set) return false;
    for (let i = 0; i < set.items.length; i++) {
      const item = set.items[i];
      const next = item.side[item.dot];
      const advance = where => add(where, { ...item, dot: item.dot + 1 });
      if (!next) {
        for (const other of sets[item.from].wants.get(item.name) || [])
          add(at, { ...other, dot: other.dot + 1 });
      } else if (next.name) {
        if (!set.wants.has(next.name)) {
          set.wants.set(next.name, []);
          begin(at, next.name);
        }
        set.wants.get(next.name).push(item);
        if (empty.has(next.name)) advance(at);
      } else if (at < tokens.length && String(next.terminal) === tokens[at]) {
        advance(at + 1);
      }
    }
  }
  return sets[tokens.length].items.some(i => i.name === start && i.dot === i.side.length && i.from === 0);
}

const extras = load(process.argv[2]);
const table = [...terminals(), ...extras]
  .map(s => ({ ...s, key: String(s.terminal), re: matcher(s.terminal) }));
const extraKeys = new Set(extras.map(s => String(s.terminal)));
const empty = nullable();
for (const file of fs.readFileSync(0, 'utf8').split('\n').filter(Boolean)) {
  const tokens = tokensOf(fs.readFileSync(file, 'utf8'), table, extraKeys);
  console.log(file, tokens !== null && recognises(tokens, 'source_file', empty) ? 'yes' : 'no');
}
