# The files in editors/ name every reserved word, layer, loss and metric, and every function of the language, as the scanner, the
# op table and the compiler have them; and no others.
. tests/cli/common.sh

# Words of each kind, a line each.
sed -n 's/^ *{TOKEN_[A-Z]*, "[^"]*", "\([a-z]*\)"},/\1/p' lang/token.c | sort >"$work/keywords"
run 0 ops
awk '{ print $1 }' "$out" | sort >"$work/ops"
sed -n 's/^.*{{"\([a-z]*\)",.*/\1/p' compiler/function.c | sort >"$work/functions"
check 'keywords' test "$(wc -l <"$work/keywords")" -ge 18
check 'layers' test "$(wc -l <"$work/ops")" -ge 50
check 'functions' test "$(wc -l <"$work/functions")" -ge 13

# equal MESSAGE KIND: standard input, words in any order, are those of that kind.
equal() {
    tr -s ' \n|"' '\n' | grep . | sort >"$work/found"
    if diff "$work/$2" "$work/found" >"$work/diff"; then pass; else fail "$1: $(tr '\n' ' ' <"$work/diff")"; fi
}

vim=editors/vim/syntax/pnet.vim
sed -n 's/^syntax keyword pnet\(Declaration\|Statement\|OperatorWord\) //p' $vim | equal 'keywords of Vim' keywords
sed -n 's/^syntax keyword pnetLayer //p' $vim | equal 'layers of Vim' ops
sed -n 's/^syntax keyword pnetFunction //p' $vim | equal 'functions of Vim' functions

# pattern NAME: the words of the rule of that name in the grammar of VS Code.
pattern() {
    grep -A1 "\"name\": \"$1\"" editors/vscode/syntaxes/pnet.tmLanguage.json | sed -n 's/.*"match": "[^(]*(\([a-z0-9_|]*\)).*/\1/p'
}
{ pattern storage.type.pnet; pattern keyword.control.pnet; pattern keyword.operator.word.pnet; } | equal 'keywords of VS Code' keywords
pattern support.function.pnet | equal 'layers of VS Code' ops
pattern support.function.builtin.pnet | equal 'functions of VS Code' functions

grammar=editors/tree-sitter/grammar.js queries=editors/tree-sitter/queries/highlights.scm
sed "s/field('[a-z]*'//g; s/name: 'pnet'//" $grammar | grep -o "'[a-z]*'" | tr -d "'" | sort -u | equal 'keywords of tree-sitter' keywords
grep -oE '^ *"[a-z]+"$|^\["(for|and)".*\]' $queries | tr -d '[]' | equal 'keywords of the queries of tree-sitter' keywords
# any_of N: the words of the Nth list of calls.
any_of() {
    awk -v want="$1" '/#any-of\? @function.builtin/ { n++ } n == want { print } /\)\)$/ && n == want { exit }' $queries |
        grep -o '"[a-z0-9_]*"' | tr -d '"'
}
any_of 1 | equal 'functions of tree-sitter' functions
any_of 2 | equal 'layers of tree-sitter' ops
any_of 3 | equal 'layers of tree-sitter behind a pipe' ops

# What the language server says of the functions of the language stands in docs/language.md, as a call.
while read -r name; do
    check "$name( in docs/language.md" grep -q "^| .*\`$name(" docs/language.md
done <"$work/functions"

# What writes the words leaves files that have them as they are, and gives them to files that lack some.
mkdir -p "$work/tree/compiler"
cp -r editors "$work/tree"
cp compiler/function.c "$work/tree/compiler"
program=$(realpath "$pnetc")
check 'editors/write.sh' sh "$work/tree/editors/write.sh" "$program"
check 'no change' diff -r editors "$work/tree/editors"
sed -i 's/ leaky_relu / /' "$work/tree/$vim"
sed -i 's/|leaky_relu|/|/' "$work/tree/editors/vscode/syntaxes/pnet.tmLanguage.json"
sed -i 's/ "leaky_relu" / /' "$work/tree/$queries"
for file in $vim editors/vscode/syntaxes/pnet.tmLanguage.json $queries; do differ "$file still has it" "$file" "$work/tree/$file"; done
check 'editors/write.sh' sh "$work/tree/editors/write.sh" "$program"
check 'the same again' diff -r editors "$work/tree/editors"
finish
