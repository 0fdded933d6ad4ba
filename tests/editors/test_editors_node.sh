# The files of VS Code and the grammar of tree-sitter, looked at by Node.js; skipped where it is not there. The grammar recognises
# what the parser of pnetc does: the models, and models that lack one piece, which some of them may and others may not.
command -v node >/dev/null || { echo 'skipped: no node'; exit 77; }
. tests/cli/common.sh

# ---- VS Code ----

code=editors/vscode
for file in package.json language-configuration.json syntaxes/pnet.tmLanguage.json; do
    check "$file" node -e 'JSON.parse(require("fs").readFileSync(process.argv[1], "utf8"))' "$code/$file"
done
check 'extension.js' node --check $code/extension.js
check 'files of package.json' node -e '
const fs = require("fs"), path = require("path"), folder = process.argv[1];
const p = JSON.parse(fs.readFileSync(path.join(folder, "package.json"), "utf8"));
const named = [p.main, p.contributes.languages[0].configuration, p.contributes.grammars[0].path];
for (const file of named) fs.accessSync(path.join(folder, file));
const scope = JSON.parse(fs.readFileSync(path.join(folder, p.contributes.grammars[0].path), "utf8")).scopeName;
if (scope !== p.contributes.grammars[0].scopeName) throw new Error(scope);
const configuration = JSON.parse(fs.readFileSync(path.join(folder, p.contributes.languages[0].configuration), "utf8"));
for (const key of Object.values(configuration.indentationRules)) new RegExp(key);' $code
# What the extension does, in front of stand-ins for the editor.
mkdir -p "$work/node_modules/vscode" "$work/node_modules/vscode-languageclient"
echo 'exports.workspace = { getConfiguration: () => ({ get: key => `the ${key}` }), createFileSystemWatcher: glob => glob };' \
    >"$work/node_modules/vscode/index.js"
echo 'exports.LanguageClient = class { constructor(...all) { this.all = all; } start() { console.log(JSON.stringify(this.all)); } stop() { console.log("stopped"); } };' \
    >"$work/node_modules/vscode-languageclient/node.js"
cp $code/extension.js "$work/extension.js"
node -e 'const e = require(process.argv[1]); e.activate(); e.deactivate();' "$work/extension.js" >"$out" 2>"$err"
prints '["pnet","pnet",{"command":"the path","args":["lsp"]},{"documentSelector":[{"language":"pnet"}]'
prints 'stopped'

cat >"$work/lines" <<'END'
pnet 1  # plain
## documented
param v = 5cm
x = in -> conv(16, kernel=3) -> mine * 2
g = grid(p, 1.5e-3m * 50%) == "a # b" and not yes
END
cat >"$work/want" <<'END'
1 1 storage.type
1 6 constant.numeric
1 9 comment.line.number-sign
2 1 comment.line.documentation
3 1 storage.type
3 9 keyword.operator
3 11 constant.numeric
4 3 keyword.operator
4 5 variable.language
4 8 keyword.operator
4 11 support.function
4 16 constant.numeric
4 20 variable.parameter
4 26 keyword.operator
4 27 constant.numeric
4 30 keyword.operator
4 33 entity.name.function
4 38 keyword.operator
4 40 constant.numeric
5 3 keyword.operator
5 5 support.function.builtin
5 13 constant.numeric
5 21 keyword.operator
5 23 constant.numeric
5 28 keyword.operator
5 31 string.quoted.double
5 39 keyword.operator.word
5 43 keyword.operator.word
5 47 constant.language
END
node tests/editors/textmate.js $code/syntaxes/pnet.tmLanguage.json <"$work/lines" >"$work/got" 2>"$err"
if diff "$work/want" "$work/got" >"$work/diff"; then pass; else fail "scopes: $(cat "$work/diff" "$err")"; fi

# ---- tree-sitter ----

# A copy of each model for every eleventh piece of it, without that piece.
mkdir "$work/texts"
for model in models/*.pnet tests/lang/models/*.pnet; do
    name=$(basename "$model" .pnet)
    cp "$model" "$work/texts/$name.pnet"
    node -e '
const fs = require("fs"), [model, to, every] = process.argv.slice(1), text = fs.readFileSync(model, "utf8");
const pieces = [...text.matchAll(/#.*|"[^"\n]*"|[A-Za-z0-9_]+|->|\S/g)].filter(p => p[0][0] !== "#").slice(2);
pieces.forEach((p, i) => {
  if (i % every === 0) fs.writeFileSync(`${to}-${i}.pnet`, text.slice(0, p.index) + text.slice(p.index + p[0].length));
});' "$model" "$work/texts/$name" 11
done
for text in "$work"/texts/*.pnet; do
    code=0
    "$pnetc" check --dump ast "$text" >/dev/null 2>&1 || code=$?
    case $code in
    0) echo "$text yes" ;;
    3) echo "$text no" ;;
    *) fail "pnetc check --dump ast $text: exit code $code" ;;
    esac
done >"$work/want"
ls "$work"/texts/*.pnet | node tests/editors/grammar.js editors/tree-sitter/grammar.js >"$work/got" 2>"$err" || fail "$(head -c 500 "$err")"
check 'many texts' test "$(wc -l <"$work/want")" -gt 150
check 'some that are models' test "$(grep -c ' yes$' "$work/want")" -gt 30
check 'some that are none' test "$(grep -c ' no$' "$work/want")" -gt 30
if diff "$work/want" "$work/got" >"$work/diff"; then pass; else fail "recognised otherwise: $(head -n 8 "$work/diff")"; fi
finish
