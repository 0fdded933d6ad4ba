# The commands of docs/performance.md with bench/tiles.py, on fewer points. Skipped without Python and NumPy.
. tests/cli/common.sh
python=${PNET_READERS_PYTHON:-python3}
if ! "$python" -c 'import numpy' 2>/dev/null; then
    [ "${PNET_READERS_PYTHON-}" ] && { echo "$python has no NumPy"; exit 1; }
    echo 'skipped: there is no NumPy'
    exit 77
fi

# tiles ARGUMENTS... : prints its rows
tiles() {
    local got=0
    "$python" bench/tiles.py "$pnetc" "$@" >"$out" 2>"$err" || got=$?
    if [ "$got" = 0 ]; then pass; else fail "exit code $got: $(tail -n 3 "$err")"; fi
}

grep '^python3 bench/tiles.py' docs/performance.md >"$work/commands"
count=$(wc -l <"$work/commands")
[ "$count" = 3 ] && pass || fail "$count commands in docs/performance.md"
while read -r _ _ _ options; do
    # shellcheck disable=SC2086 # options are words
    tiles $(printf '%s\n' "$options" | sed 's/1e6,1e7/2e4,1e5/; s/1e8/1e5/')
    prints "100000 "
    case $options in
    *--whole*)
        prints " 20000 "
        same=$(grep -c 'the same bytes' "$out")
        [ "$same" = 2 ] && pass || fail "$same of 2 outputs are those without tiles"
        ;;
    esac
done <"$work/commands"
finish
