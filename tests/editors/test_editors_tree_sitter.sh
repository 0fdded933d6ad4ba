# tree-sitter makes a parser of the grammar, reads the models with it, and takes the queries; skipped where there is no tree-sitter.
command -v tree-sitter >/dev/null || { echo 'skipped: no tree-sitter'; exit 77; }
. tests/cli/common.sh
cp -r editors/tree-sitter "$work/grammar"
models=$(realpath models/*.pnet)
cd "$work/grammar" || exit
check 'tree-sitter generate' tree-sitter generate
for model in $models; do
    check "$model" tree-sitter parse --quiet "$model"
    check "queries of $model" tree-sitter query queries/highlights.scm "$model"
done
printf 'pnet 1\nx = (\n' >wrong.pnet
check 'an error' hides -q . <(tree-sitter parse --quiet wrong.pnet >/dev/null 2>&1 && echo accepted)
finish
