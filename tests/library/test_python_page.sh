# The Python of docs/python.md works, as one program, and then its commands; they print what the page shows.
page=docs/python.md
least=1
. tests/library/python.sh
prepare() {
    python_package
    ln -s "$root/examples" "$work/examples"
    awk '/^```python$/ { inside = 1; next } /^```/ { inside = 0 } inside' "$root/$page" >"$work/page.py"
    { echo "$python -W error page.py"; cat "$work/commands"; } >"$work/all"
    mv "$work/all" "$work/commands"
}
. tests/docs/page.sh
[ "$(grep -c 'pnet\.\|session\.\|runs\.' page.py)" -gt 15 ] || { echo 'little Python found: is the extraction broken?' >&2; status=1; }
tail -c $((1000 * 3 * 4)) scores.npy >scores
says 'pnetc infer gives the same bits' cmp scores scores.f32
finish
