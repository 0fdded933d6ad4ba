# Vim's highlighting loads, finds its file type, and names the pieces of a model; skipped where there is no Vim with syntax.
command -v vim >/dev/null && vim --version | grep -q '+syntax' || { echo 'skipped: no vim with syntax files'; exit 77; }
. tests/cli/common.sh
cat >"$work/model.pnet" <<'END'
pnet 1
## documented
# plain
param v = 5cm
net n(p: cloud) {
  x = p.rgb -> conv(16, kernel=3) -> mine
  for i = 1..3 { y = "text # 1" }
  return grid(p, 1.5e-3m * 50%)
}
END
# group LINE COLUMN of what is looked at, and what it must be; nothing: no group.
cat >"$work/want" <<'END'
1 1 pnetDeclaration
1 6 pnetNumber
2 1 pnetDocComment
2 5 pnetDocComment
3 3 pnetComment
4 1 pnetDeclaration
4 7
4 11 pnetNumber
4 13 pnetNumber
5 1 pnetDeclaration
5 5 pnetCall
5 10 pnetType
6 13 pnetOperator
6 16 pnetLayer
6 25 pnetArgument
6 38 pnetStage
7 3 pnetStatement
7 11 pnetNumber
7 12 pnetOperator
7 14 pnetNumber
7 22 pnetString
7 28 pnetString
8 3 pnetStatement
8 10 pnetFunction
8 18 pnetNumber
8 24 pnetNumber
8 28 pnetNumber
8 30 pnetNumber
END
{
    echo 'let out = [&filetype . " " . &commentstring . " " . &shiftwidth]'
    while read -r line column _; do
        echo "call add(out, '$line $column ' . synIDattr(synID($line, $column, 1), 'name'))"
    done <"$work/want"
    echo "call writefile(out, '$work/got')"
    echo 'qall!'
} >"$work/look.vim"
vim -N -u NONE -i NONE -n -es --cmd "set runtimepath=$PWD/editors/vim,\$VIMRUNTIME" -c 'filetype plugin on' -c 'syntax on' \
    -c "edit $work/model.pnet" -S "$work/look.vim" </dev/null >"$work/vim.out" 2>&1 || fail "vim: $(head -c 500 "$work/vim.out")"
check 'file type and settings' test "$(head -n 1 "$work/got")" = 'pnet # %s 2'
tail -n +2 "$work/got" | sed 's/ *$//' >"$work/groups"
if diff "$work/want" "$work/groups" >"$work/diff"; then pass; else fail "groups: $(cat "$work/diff")"; fi
finish
