# The Python of docs/python.md works, as one program, and then its commands; they print what the page shows.
# tests/cuda/gpu_torch.sh runs what needs a GPU.
page=docs/python.md
least=1
. tests/library/python.sh
prepare() {
    python_package
    ln -s "$root/examples" "$work/examples"
    { echo "$python -W error $root/python/tests/page.py $root/$page"; cat "$work/commands"; } >"$work/all"
    mv "$work/all" "$work/commands"
}
. tests/docs/page.sh
grep -q '[5-9] blocks ran, and [1-9] for a GPU' output || { echo 'few blocks found: is the extraction broken?' >&2; status=1; }
tail -c $((1000 * 3 * 4)) scores.npy >scores
says 'pnetc infer gives the same bits' cmp scores scores.f32
finish
