// Cuts the lines of standard input into pieces by a TextMate grammar of `match` rules alone, and prints for each piece its line,
// column and scope: `node textmate.js GRAMMAR`.
'use strict';
const fs = require('fs');

const grammar = JSON.parse(fs.readFileSync(process.argv[2], 'utf8'));
const rules = grammar.patterns.map(p => {
  if (!p.match || Object.keys(p).length !== 2) throw new Error(`${p.name}: not a plain match`);
  return { name: p.name, re: new RegExp(p.match, 'g') };
});
fs.readFileSync(0, 'utf8').split('\n').forEach((line, row) => {
  for (let at = 0; at <= line.length;) {
    let best = null;
    for (const rule of rules) {
      rule.re.lastIndex = at;
      const found = rule.re.exec(line);
      if (found && found[0] && (!best || found.index < best.index)) best = { index: found.index, text: found[0], name: rule.name };
    }
    if (!best) break;
    const blanks = best.text.length - best.text.trimStart().length;
    console.log(row + 1, best.index + blanks + 1, best.name.replace(/\.pnet$/, ''));
    at = best.index + best.text.length;
  }
});
